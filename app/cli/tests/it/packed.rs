//! Packed copies: readable whenever a run is killed, and by the programs that archives use.

use crate::world::{Source, abreast};
use abreast_testkit::folder::{files, same};
use abreast_testkit::{Random, eventually_ok, kills, provided, run, seed};
use abreast_warc::{Kind, ReadError, read_record, skip_http_head};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kills of one test.
const KILLS: u64 = 50;

/// What an archive says its resources are, read from its begin: path to bytes.
type Archived = BTreeMap<PathBuf, Vec<u8>>;

/// Reads every segment. A torn record may stand only at the end of a file; says how many there are.
fn read_archive(copy: &Path) -> (Archived, usize) {
    let mut paths: Vec<_> = fs::read_dir(copy.join("archive"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    paths.sort();
    let (mut found, mut by_date, mut torn) =
        (Archived::new(), BTreeMap::<(String, String), Vec<u8>>::new(), 0);
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let mut input = bytes.as_slice();
        loop {
            let mut read = match read_record(&mut input) {
                Ok(Some(read)) => read,
                Ok(None) => break,
                Err(ReadError::Torn(_)) => {
                    torn += 1;
                    break;
                }
                Err(error) => panic!("{}: {error}", path.display()),
            };
            let kind = read.head.kind().unwrap();
            let field = |name: &str| read.head.field(name).unwrap_or_default().to_owned();
            let (uri, date) = (field("WARC-Target-URI"), field("WARC-Date"));
            let original = (field("WARC-Refers-To-Target-URI"), field("WARC-Refers-To-Date"));
            let mut body = Vec::new();
            let whole = if matches!(kind, Kind::Response | Kind::Revisit) {
                skip_http_head(&mut read.block).is_ok() && read.block.read_to_end(&mut body).is_ok()
            } else {
                read.block.read_to_end(&mut body).is_ok()
            };
            if !whole {
                torn += 1;
                break;
            }
            let Some((_, name)) = uri.split_once("/set/r/") else { continue };
            let name = decoded(name);
            match kind {
                Kind::Metadata => drop(found.remove(Path::new(&name))),
                Kind::Revisit => body.clone_from(&by_date[&original]),
                _ => {}
            }
            if kind != Kind::Metadata {
                by_date.insert((uri.clone(), date), body.clone());
                found.insert(name.into(), body);
            }
        }
    }
    (found, torn)
}

fn decoded(name: &str) -> String {
    let mut out = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            out.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            out.push(byte);
            rest = after;
        }
    }
    String::from_utf8(out).unwrap()
}

fn sync_packed(url: &str, copy: &Path, more: &[&str]) -> Command {
    let mut command = abreast();
    command
        .args(["sync", url, &format!("warc:{}", copy.display())])
        .args(["--quiet", "--max-delete", "100%"])
        .args(more);
    command
}

#[test]
fn killed_run_leaves_a_readable_archive_that_is_completed() {
    let (kills, seed) = (kills(KILLS), seed(1));
    let place = tempfile::tempdir().unwrap();
    let (original, copy) = (place.path().join("original"), place.path().join("copy"));
    fs::create_dir_all(&original).unwrap();
    let mut random = Random::new(seed);
    let write = |random: &mut Random, number: u64| {
        let aside = original.join(".new");
        // A few large ones, and some that several resources have in common.
        let text = match random.below(30) {
            0 => format!("large {number} ").repeat(150_000),
            1..8 => "the same in many places ".repeat(30),
            _ => format!("{number} {} ", random.below(1_000_000))
                .repeat(random.below(300) as usize + 1),
        };
        fs::write(&aside, text).unwrap();
        fs::rename(aside, original.join(format!("f{number:03}.txt"))).unwrap();
    };
    for number in 0..150 {
        write(&mut random, number);
    }
    let source = Source::start(&original, 0, &[]);
    let (mut killed, mut torn, mut round) = (0, 0, 0);
    while killed < kills {
        round += 1;
        assert!(round < 100 * kills, "only {killed} runs were killed in time");
        for _ in 0..10 {
            let number = random.below(200);
            if random.below(4) == 0 {
                let _ = fs::remove_file(original.join(format!("f{number:03}.txt")));
            } else {
                write(&mut random, number);
            }
        }
        let more = ["--segment-size", "300K", "--compress", if round % 2 == 0 { "0" } else { "1" }];
        let mut child = sync_packed(&source.url(), &copy, &more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_millis(random.below(60));
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        torn += read_archive(&copy).1;
    }
    println!("{killed} kills, {torn} torn ends seen");
    eventually_ok("the copy catches up", || {
        let output = run(&mut sync_packed(&source.url(), &copy, &[]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        same(&files(&original), &read_archive(&copy).0)
    });
    assert_eq!(read_archive(&copy).1, 0, "a torn end was left");
    let target = format!("warc:{}", copy.display());
    let audit = run(abreast().args(["audit", &source.url(), &target, "--full"]));
    assert_eq!(audit.status.code(), Some(0), "{}", String::from_utf8_lossy(&audit.stdout));
}

#[test]
fn archive_programs_read_a_packed_copy_and_its_index() {
    let name = "archive_programs_read_a_packed_copy_and_its_index";
    let Some(python) = provided(name, "ABREAST_TEST_PYTHON") else { return };
    let place = tempfile::tempdir().unwrap();
    let (original, copy) = (place.path().join("original"), place.path().join("copy"));
    fs::create_dir_all(original.join("Sub Folder")).unwrap();
    let text = "one text, kept once ".repeat(60);
    for (path, body) in [
        ("a.html", "<p>hello"),
        ("Sub Folder/É #1.txt", text.as_str()),
        ("same.txt", &text),
        ("empty.txt", ""),
        ("large.txt", &"large ".repeat(400_000)),
    ] {
        fs::write(original.join(path), body).unwrap();
    }
    let source = Source::start(&original, 0, &["--digests", "both"]);
    let sync = |more: &[&str]| {
        let output = run(&mut sync_packed(&source.url(), &copy, more));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    sync(&["--block-digest"]);
    fs::write(original.join("a.html"), "<p>hello again").unwrap();
    fs::remove_file(original.join("empty.txt")).unwrap();
    eventually_ok("the changes are copied", || {
        sync(&["--compress", "6"]);
        same(&files(&original), &read_archive(&copy).0)
    });

    // Every digest is right.
    let archive = copy.join("archive");
    let segments: Vec<_> =
        fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path()).collect();
    let check =
        run(Command::new(&python).args(["-m", "warcio.cli", "check", "-v"]).args(&segments));
    let printed = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.success() && printed.contains("digest pass"), "{printed}");
    assert!(!printed.contains("digest failed") && !printed.contains("not chunked"), "{printed}");

    // The index is the one that the replay program makes itself.
    let script = "import sys; from pywb.indexer.cdxindexer import main; main(sys.argv[1:])";
    let index = run(Command::new(&python).args(["-c", script, "-j", "-s"]).arg(&archive));
    let theirs = captures(&String::from_utf8_lossy(&index.stdout));
    let mut ours = String::new();
    for entry in fs::read_dir(copy.join("indexes")).unwrap() {
        ours.push_str(&fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    assert!(theirs.len() >= 6, "{theirs:?}\n{}", String::from_utf8_lossy(&index.stderr));
    assert_eq!(captures(&ours), theirs);
}

/// Key, instant and place of each capture of an index.
fn captures(index: &str) -> Vec<(String, serde_json::Value)> {
    let mut lines: Vec<_> = index
        .lines()
        .filter_map(|line| {
            let (key, json) = line.split_once(" {")?;
            Some((key.to_owned(), serde_json::from_str(&format!("{{{json}")).ok()?))
        })
        // Records of deletions are not captures.
        .filter(|(_, fields): &(_, serde_json::Value)| fields["mime"] != "application/warc-fields")
        .collect();
    lines.sort_by(|one, other| {
        (&one.0, one.1["offset"].as_str()).cmp(&(&other.0, other.1["offset"].as_str()))
    });
    lines
}
