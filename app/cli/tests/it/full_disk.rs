//! A full disk under the store: writes are refused before anything is changed, and recorded once there is space.

use crate::world::{Source, abreast};
use abreast_testkit::{eventually, run, skipped};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// A file system of 8 MiB, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where this is not permitted.
    fn mount(path: PathBuf) -> Option<Self> {
        Self::mount_sized(path, "8m")
    }

    fn mount_sized(path: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let mut mount = std::process::Command::new("mount");
        let mounted =
            mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(path))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Leaves so many bytes free.
    fn fill(&self, free: u64) {
        let mut file = fs::File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(free)).unwrap();
    }

    fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Makes room for everything.
    fn grow(&self) {
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-o", "remount,size=96m"]).arg(&self.0).output().unwrap();
        assert!(mounted.status.success(), "{mounted:?}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// A request to the API: the status, and the answer.
fn ask(source: &Source, method: &str, path: &str, media_type: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(&source.address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} /api/v1/sets/{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: {media_type}\r\n\
         Content-Length: {length}\r\n\r\n{body}",
        source.address
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// What is written in each kind of set: method, path below the sets, type and body.
const WRITES: &[(&str, &str, &str, &str)] = &[
    ("PUT", "papers/content/a.txt", "text/plain", "new"),
    ("PUT", "papers/content/b.txt", "text/plain", "new"),
    ("DELETE", "papers/content/a.txt", "text/plain", ""),
    ("PUT", "kept/content/a.txt", "text/plain", "new"),
    ("DELETE", "kept/content/a.txt", "text/plain", ""),
    (
        "PUT",
        "kept/resource?uri=b.txt",
        "application/json",
        r#"{"links":[{"rel":"describedby","href":"https://example.org/"}]}"#,
    ),
    ("PUT", "records/resource?uri=https://example.org/1", "application/json", r#"{"length":1}"#),
    (
        "PUT",
        "things/resource?uri=http://example.org/1",
        "application/n-triples",
        "<http://example.org/1> <http://example.org/p> \"1\" .",
    ),
];

#[test]
fn a_full_disk_under_the_store_changes_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let Some(disk) = SmallDisk::mount(at("disk")) else {
        return skipped("full_disk", "file systems cannot be mounted here");
    };
    for name in ["papers", "kept"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("a.txt"), "old").unwrap();
    }
    fs::write(at("kept/b.txt"), "old").unwrap();
    let config = at("abreast.toml");
    let text = format!(
        "data = {:?}\n[api]\nwrite = true\n[[set]]\nname = \"papers\"\nfolder = {:?}\ndebounce = \"30ms\"\n\
         [[set]]\nname = \"kept\"\nfolder = {:?}\nversions = 5\n[[set]]\nname = \"records\"\nrecords = true\n\
         [[set]]\nname = \"things\"\norigin = \"rdf\"\nnamespace = \"http://example.org/\"\n",
        disk.0.join("store"),
        at("papers"),
        at("kept")
    );
    fs::write(&config, text).unwrap();
    let source = Source::start_config(config.to_str().unwrap());
    let files = |name: &str| abreast_testkit::folder::paths(&at(name)).len();
    for free in [0, 8_192, 200_000] {
        disk.fill(free);
        // A change of a record may find room yet.
        let is_asked =
            |(_, path, ..): &&(&str, &str, &str, &str)| free == 0 || path.contains(".txt");
        for (method, path, media_type, body) in WRITES.iter().filter(is_asked) {
            let (status, answer) = ask(&source, method, path, media_type, body);
            assert_eq!(status, 507, "{free} bytes free: {method} {path}: {answer}");
            assert_eq!(answer["type"], "urn:abreast:problem:disk", "{answer}");
            for name in ["papers", "kept"] {
                let text = fs::read_to_string(at(name).join("a.txt")).ok();
                let expected = if name == "kept" { 2 } else { 1 };
                assert_eq!(
                    (text.as_deref(), files(name)),
                    (Some("old"), expected),
                    "{method} {path}"
                );
            }
        }
        disk.clear();
    }
    for (method, path, media_type, body) in WRITES {
        let (status, answer) = ask(&source, method, path, media_type, body);
        assert!([200, 201].contains(&status), "{method} {path}: {status} {answer}");
    }
    // What others change meanwhile is recorded later.
    disk.fill(0);
    fs::write(at("papers/c.txt"), "later").unwrap();
    let (method, path, media_type, body) = WRITES[0];
    assert_eq!(ask(&source, method, path, media_type, body).0, 507);
    disk.clear();
    eventually("it is recorded", || {
        let log = run(abreast().args(["log", "papers", "--server", &source.url()]));
        String::from_utf8_lossy(&log.stdout).contains("c.txt")
    });
    assert_eq!(source.stop(), Some(0));
    assert!(is_whole(&disk.0.join("store")));
}

/// Runs a command that meets the end of the disk half-way.
#[track_caller]
fn run_into_the_end(words: &[&str]) -> String {
    let output = run(abreast().args(words));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert_eq!(output.status.code(), Some(13), "{words:?}: {text}");
    let is_full = ["No space left on device", "disk is full"].iter().any(|it| text.contains(it));
    assert!(is_full && text.contains("help: free space"), "{words:?}: {text}");
    assert!(!text.contains("panicked"), "{words:?}: {text}");
    assert_eq!(text.matches("help: free space").count(), 1, "{words:?}: {text}");
    assert!(!text.contains("\\n  help"), "{words:?}: {text}");
    text
}

/// Files of 100,000 bytes, 14 MB of them, each with contents of its own.
fn many_files(folder: &Path) {
    fs::create_dir(folder).unwrap();
    for number in 0..140_u32 {
        let text = (0..12_500).fold(String::new(), |mut text, at| {
            let _ =
                std::fmt::Write::write_fmt(&mut text, format_args!("{:08x}", number * 7_919 + at));
            text
        });
        fs::write(folder.join(format!("{number:03}.txt")), text).unwrap();
    }
}

#[test]
fn a_copy_whose_disk_fills_up_half_way_is_continued() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    many_files(&at("papers"));
    let source = Source::start(&at("papers"), 0, &[]);
    for (number, kind) in ["", "warc:"].into_iter().enumerate() {
        let Some(disk) = SmallDisk::mount(at(&format!("disk-{number}"))) else {
            return skipped("full_disk", "file systems cannot be mounted here");
        };
        let copy = disk.0.join("copy").to_str().unwrap().to_owned();
        let (url, target) = (source.url(), format!("{kind}{copy}"));
        let sync = ["sync", &url, &target, "--quiet"];
        run_into_the_end(&sync);
        if kind.is_empty() {
            // What is there is whole.
            for (path, bytes) in abreast_testkit::folder::files(Path::new(&copy)) {
                if !path.starts_with(".abreast") {
                    assert!(fs::read(at("papers").join(&path)).unwrap() == bytes, "{path:?}");
                }
            }
        }
        disk.grow();
        let output = run(abreast().args(sync));
        assert!(output.status.success(), "{sync:?}: {output:?}");
        let output = run(abreast().args(["audit", &url, &target, "--full"]));
        assert!(output.status.success(), "{output:?}");
        let output = run(abreast().args(["check", &copy, "--read-data"]));
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn an_import_whose_disk_fills_up_states_what_it_recorded() {
    let temporary = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(temporary.path().join("disk")) else {
        return skipped("full_disk", "file systems cannot be mounted here");
    };
    let data = disk.0.join("store");
    fs::create_dir(&data).unwrap();
    let lines = temporary.path().join("lines");
    let more = temporary.path().join("more");
    let line = |number: usize| format!("{{\"uri\":\"http://h/{number:02000}\"}}\n");
    fs::write(&lines, line(0)).unwrap();
    fs::write(&more, (1..2_000).map(line).collect::<String>()).unwrap();
    let import = |file: &Path| {
        let words = ["import", "known", "--data", data.to_str().unwrap(), file.to_str().unwrap()];
        words.map(str::to_owned)
    };
    let first = run(abreast().args(import(&lines)));
    assert!(first.status.success(), "{first:?}");
    let words = import(&more);
    let text = run_into_the_end(&words.iter().map(String::as_str).collect::<Vec<_>>());
    disk.grow();
    let log = |data: &Path| {
        let log = run(abreast().args(["log", "known", "--data"]).arg(data));
        assert!(log.status.success(), "{log:?}");
        String::from_utf8_lossy(&log.stdout).lines().count()
    };
    let recorded = log(&data);
    // What it printed as recorded is in the log.
    let stated = text.split("recorded ").nth(1).and_then(|rest| rest.split(' ').next());
    let stated: usize = stated.map_or(0, |number| number.replace(',', "").parse().unwrap());
    assert!(stated <= recorded && recorded < 1_999, "{stated}, {recorded}: {text}");
    assert!(is_whole(&data));
    let again = run(abreast().args(&words));
    assert!(again.status.success(), "{again:?}");
    assert_eq!(log(&data), 1_999);
}

#[test]
fn a_source_with_versions_records_what_it_could_store() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let Some(disk) = SmallDisk::mount(at("disk")) else {
        return skipped("full_disk", "file systems cannot be mounted here");
    };
    let (papers, data) = (at("papers"), disk.0.join("store"));
    many_files(&papers);
    let words = ["--data", data.to_str().unwrap(), "--versions", "5"];
    let log_file = at("log");
    let source = Source::start_logged(&papers, &log_file, &words);
    let failures = |what: &str| {
        let text = fs::read_to_string(&log_file).unwrap();
        text.lines()
            .filter(|line| line.contains("cannot keep a copy") && line.contains(what))
            .count()
    };
    // Of what cannot be stored nothing is recorded, and the set is not published as complete.
    eventually("the disk is full", || failures("") > 0);
    let published = source.answer("/set/resourcelist.xml").map(|(status, _)| status);
    assert_eq!(published, Some(503));
    disk.grow();
    eventually("everything is recorded", || {
        source.answer("/readyz").is_some_and(|(status, _)| status == 200)
    });
    for (path, bytes) in abreast_testkit::folder::files(&papers) {
        let name = path.to_str().unwrap();
        assert!(source.get(&format!("/set/r/{name}")).as_ref() == Some(&bytes), "{name}");
    }
    // The same while it runs.
    disk.fill(100_000);
    let changed = papers.join("000.txt");
    let before = failures("000.txt");
    fs::write(&changed, vec![b'x'; 300_000]).unwrap();
    fs::remove_file(papers.join("001.txt")).unwrap();
    eventually("the disk is full again", || failures("000.txt") > before);
    let log = || {
        let log = run(abreast().args(["log", "set", "--server", &source.url()]));
        String::from_utf8_lossy(&log.stdout).into_owned()
    };
    assert!(!log().contains("000.txt"), "{}", log());
    disk.clear();
    eventually("the change is recorded", || {
        let log = log();
        let has = |name: &str, change: &str| {
            log.lines().any(|line| line.contains(name) && line.contains(change))
        };
        has("000.txt", "updated") && has("001.txt", "deleted")
    });
    assert_eq!(source.stop(), Some(0));
    assert!(is_whole(&data));
}

#[test]
fn snapshots_and_archives_wait_for_space_and_leave_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    // Archives leave 320 MiB for the store.
    let Some(disk) = SmallDisk::mount_sized(at("disk"), "640m") else {
        return skipped("full_disk", "file systems cannot be mounted here");
    };
    let (rdf, store) = (at("rdf"), disk.0.join("store"));
    fs::create_dir(&rdf).unwrap();
    let lines: Vec<String> = (0..4_000)
        .map(|number| {
            format!("<http://example.org/{number}> <http://example.org/p> \"{number:01000}\" .\n")
        })
        .collect();
    let text = lines.concat();
    fs::write(rdf.join("all.nt"), text).unwrap();
    let config = at("abreast.toml");
    let settings = format!(
        "listen = \"127.0.0.1:0\"\ndata = {store:?}\n[[set]]\nname = \"things\"\norigin = \"rdf\"\nfolder = {rdf:?}\n\
         archives = {{ every = \"1s\", keep = 3 }}\n"
    );
    fs::write(&config, settings).unwrap();
    let log_file = at("log");
    let start =
        || Source::run_logged(abreast().args(["serve", "--config"]).arg(&config), &log_file);
    let (snapshots, archives) = (store.join("snapshots/things"), store.join("archives/things"));
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let has_snapshot = || names(&snapshots).iter().any(|name| name.contains(".json"));
    let has_archive = || names(&archives).iter().any(|name| name.contains(".gz"));
    let source = start();
    eventually("both are made", || has_snapshot() && has_archive());
    assert_eq!(source.stop(), Some(0));

    for folder in [&snapshots, &archives] {
        fs::remove_dir_all(folder).unwrap();
    }
    // Enough to read the file again, which takes 4 MB, and not for a snapshot.
    disk.fill(7 << 20);
    let source = start();
    let failed = |what: &str, why: &str| {
        let text = fs::read_to_string(&log_file).unwrap();
        text.lines().any(|line| line.contains(what) && line.contains(why))
    };
    eventually("the snapshot fails", || failed("cannot make a snapshot", "bytes are free"));
    eventually("the archive fails", || {
        failed("cannot archive the Resource List", "bytes are free")
    });
    eventually("no part is left", || {
        let of_snapshots = names(&snapshots);
        of_snapshots.is_empty() && !has_archive()
    });
    assert!(source.answer("/things/capabilitylist.xml").is_some_and(|(status, _)| status == 200));
    assert_eq!(source.stop(), Some(0));

    disk.clear();
    let source = start();
    eventually("both are made again", || has_snapshot() && has_archive());
    assert_eq!(source.stop(), Some(0));
    assert!(is_whole(&store));
}

#[test]
fn a_site_whose_disk_fills_up_half_way_is_built_again() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let Some(disk) = SmallDisk::mount(at("disk")) else {
        return skipped("full_disk", "file systems cannot be mounted here");
    };
    many_files(&at("papers"));
    let (papers, site, data) = (at("papers"), disk.0.join("site"), at("data"));
    let word = |path: &Path| path.to_str().unwrap().to_owned();
    let words = [
        "build",
        "--copy",
        "--base-url",
        "http://h/",
        "--out",
        &word(&site),
        "--data",
        &word(&data),
        &word(&papers),
    ];
    run_into_the_end(&words);
    // No list names a file that is not there.
    let named = |site: &Path| {
        let files = abreast_testkit::folder::files(site);
        let lists = files.iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "xml"));
        let texts: String =
            lists.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect();
        let names = (0..140).map(|number| format!("{number:03}.txt"));
        names.filter(|name| texts.contains(&format!("/{name}<"))).collect::<Vec<_>>()
    };
    let is_there = |name: &String| {
        abreast_testkit::folder::files(&site).iter().any(|(path, bytes)| {
            path.ends_with(name) && *bytes == fs::read(papers.join(name)).unwrap()
        })
    };
    assert!(named(&site).iter().all(is_there));
    disk.grow();
    let output = run(abreast().args(words));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(named(&site).len(), 140);
    assert!(named(&site).iter().all(is_there));
}

#[test]
fn a_copy_of_statements_whose_disk_fills_up_is_continued() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let Some(disk) = SmallDisk::mount(at("disk")) else {
        return skipped("full_disk", "file systems cannot be mounted here");
    };
    fs::create_dir(at("papers")).unwrap();
    for number in 0..140_u32 {
        let line = |at: u32| {
            format!("<http://h/{number}> <http://h/p{at}> \"{:090}\" .\n", number * 7_919 + at)
        };
        fs::write(
            at("papers").join(format!("{number:03}.nt")),
            (0..800).map(line).collect::<String>(),
        )
        .unwrap();
    }
    let source = Source::start(&at("papers"), 0, &[]);
    let copy = disk.0.join("copy").to_str().unwrap().to_owned();
    let (url, target) = (source.url(), format!("nquads:{copy}"));
    let sync = ["sync", &url, &target, "--quiet"];
    run_into_the_end(&sync);
    disk.grow();
    let output = run(abreast().args(sync));
    assert!(output.status.success(), "{output:?}");
    let output = run(abreast().args(["audit", &url, &target, "--full"]));
    assert!(output.status.success(), "{output:?}");
    let output = run(abreast().args(["check", &copy, "--read-data"]));
    assert!(output.status.success(), "{output:?}");
    let mut lines = 0;
    for (path, bytes) in abreast_testkit::folder::files(Path::new(&copy)) {
        if path.extension().is_some_and(|it| it == "nq") {
            let is_statement = |line: &&[u8]| line.starts_with(b"<http://h/");
            lines += bytes.split(|byte| *byte == b'\n').filter(is_statement).count();
        }
    }
    assert_eq!(lines, 140 * 800);
}

fn is_whole(store: &Path) -> bool {
    run(abreast().arg("check").arg(store).arg("--read-data")).status.success()
}

#[test]
fn a_full_disk_at_the_start_is_named_and_code_13() {
    let place = tempfile::tempdir().unwrap();
    let papers = place.path().join("papers");
    fs::create_dir(&papers).unwrap();
    for number in 0..20 {
        fs::write(papers.join(format!("{number}.txt")), vec![b'a'; 4_096]).unwrap();
    }
    let Some(disk) = SmallDisk::mount_sized(place.path().join("disk"), "512k") else {
        return skipped(
            "full_disk::a_full_disk_at_the_start_is_named_and_code_13",
            "file systems cannot be mounted here",
        );
    };
    let source = Source::start(&papers, 0, &[]);
    let url = source.url();
    let (store, copy) = (disk.0.join("store"), disk.0.join("copy"));
    let (store, copy) = (store.to_str().unwrap(), copy.to_str().unwrap());
    let papers = papers.to_str().unwrap();
    // The file system counts pages of 4 KiB; the store and its shared memory take some tens of them.
    let mut failed = 0;
    for free in (0..=128).step_by(8) {
        for words in [
            &["sync", &*url, copy, "--quiet", "--retries", "0"][..],
            &["build", papers, "--base-url", "http://h/", "--copy", "--out", copy],
            &["import", "records", "/dev/null", "--data", store],
        ] {
            let _ = fs::remove_dir_all(store);
            let _ = fs::remove_dir_all(copy);
            let _ = fs::create_dir(store);
            disk.fill(free << 10);
            let output = run(abreast().args(words));
            disk.clear();
            if output.status.success() {
                continue;
            }
            failed += 1;
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let is_partial = words[0] != "import" && output.status.code() == Some(3);
            assert!(
                output.status.code() == Some(13) || is_partial,
                "{words:?}, {free} KiB: {:?} {text}",
                output.status
            );
            let lower = text.to_lowercase();
            assert!(
                lower.contains("full") || lower.contains("no space"),
                "{words:?} {free}: {text}"
            );
            assert!(!text.contains("Error code"), "{words:?}, {free} KiB: {text}");
            assert!(!text.contains("disk I/O error"), "{words:?}, {free} KiB: {text}");
        }
    }
    assert!(failed >= 12, "{failed}");
}
