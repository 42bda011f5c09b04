//! A site as files, behind a server that only sends files: mirrored, followed, killed while it is
//! written.

use crate::world::{Source, abreast, audit, get, sync};
use abreast_resourcesync::v1_1::{Capability, Document, Root};
use abreast_testkit::folder::assert_equal;
use abreast_testkit::http::{Server, send};
use abreast_testkit::{Random, eventually, kills, provided, run, seed};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Kills while a site is written.
const KILLS: u64 = 40;

/// The plainest web server: sends files, with a length and nothing else.
fn file_server(root: &Path) -> Server {
    file_server_with(root, |_| String::new())
}

/// The same, with headers by the path of a file.
pub(crate) fn file_server_with(
    root: &Path,
    headers: impl Fn(&Path) -> String + Send + Sync + 'static,
) -> Server {
    let root = root.to_owned();
    Server::new(move |request, stream| {
        let path =
            abreast_webtypes::decode_segment(request.path().trim_start_matches('/').as_bytes());
        let path = root.join(String::from_utf8_lossy(&path).as_ref());
        match fs::read(&path) {
            Ok(body) => send(stream, "200 OK", &headers(&path), &body),
            Err(_) => send(stream, "404 Not Found", "", b""),
        }
    })
}

pub(crate) fn command(folder: &Path, site: &Path, base: &str) -> Command {
    let mut command = abreast();
    command.arg("build").arg(folder).arg("--out").arg(site).args([
        "--base-url",
        base,
        "--name",
        "set",
    ]);
    command
}

fn build(folder: &Path, site: &Path, base: &str, more: &[&str]) -> Output {
    let output = run(command(folder, site, base).args(more));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

struct Places {
    _temporary: tempfile::TempDir,
    original: PathBuf,
    site: PathBuf,
    copy: PathBuf,
}

fn places() -> Places {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let places = Places {
        original: place.join("original"),
        site: place.join("site"),
        copy: place.join("copy"),
        _temporary: temporary,
    };
    for folder in [&places.original, &places.site, &places.copy] {
        fs::create_dir(folder).unwrap();
    }
    places
}

#[test]
fn a_site_of_files_is_mirrored_and_followed() {
    let places = places();
    let server = file_server(&places.site);
    for number in 0..60 {
        fs::create_dir_all(places.original.join(format!("d{}", number % 7))).unwrap();
        fs::write(
            places.original.join(format!("d{}/f {number}.xml", number % 7)),
            format!("<n>{number}</n>"),
        )
        .unwrap();
    }
    build(&places.original, &places.site, &server.url("/"), &["--copy"]);
    let summary = sync(&server.url("/"), &places.copy, 0, &[]);
    assert_eq!(summary["created"], 60);
    assert_equal(&places.original, &places.copy);

    fs::write(places.original.join("d1/f 1.xml"), "another").unwrap();
    fs::remove_file(places.original.join("d2/f 2.xml")).unwrap();
    fs::write(places.original.join("new"), "new").unwrap();
    build(&places.original, &places.site, &server.url("/"), &["--copy"]);
    let summary = sync(&server.url("/"), &places.copy, 0, &[]);
    assert_eq!(
        (&summary["mode"], &summary["created"], &summary["updated"], &summary["deleted"]),
        (&"incremental".into(), &1.into(), &1.into(), &1.into()),
        "{summary}"
    );
    assert_equal(&places.original, &places.copy);
    assert_eq!(audit(&server.url("/"), &places.copy), 0);
}

#[test]
fn resources_that_are_published_already_are_not_copied() {
    let places = places();
    let server = file_server(&places.site);
    let data = places.site.join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), "x").unwrap();
    let resources = format!("{}data/", server.url("/"));
    build(&data, &places.site, &server.url("/"), &["--resources-url", &resources]);
    assert!(!places.site.join("set/r").exists());
    sync(&server.url("/"), &places.copy, 0, &[]);
    assert_equal(&data, &places.copy);
}

#[test]
fn resync_copies_a_site_of_files_and_follows_it() {
    let Some(program) = provided("resync reads our files", "ABREAST_TEST_RESYNC_SYNC") else {
        return;
    };
    let places = places();
    let server = file_server(&places.site);
    for number in 0..20 {
        fs::write(places.original.join(format!("f{number}")), format!("{number}")).unwrap();
    }
    build(&places.original, &places.site, &server.url("/"), &["--copy"]);
    let mapping = format!("{}set/r={}", server.url("/"), places.copy.display());
    let resync = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--delete").args(arguments).arg(&mapping);
        let output = run(command.current_dir(places.site.parent().unwrap()));
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !printed.contains("ERROR"), "{printed}");
    };
    resync(&[
        "--baseline",
        "--hash",
        "md5",
        "--sitemap",
        &format!("{}set/resourcelist.xml", server.url("/")),
    ]);
    assert_equal(&places.original, &places.copy);
    fs::write(places.original.join("f3"), "another").unwrap();
    fs::remove_file(places.original.join("f4")).unwrap();
    build(&places.original, &places.site, &server.url("/"), &["--copy"]);
    let changes = format!("{}set/changelist.xml", server.url("/"));
    resync(&["--incremental", "--changelist-uri", &changes, "--from", "2020-01-01T00:00:00Z"]);
    assert_equal(&places.original, &places.copy);
}

/// Follows all links from the Source Description: every linked document must exist and be complete.
/// Returns the number of documents.
fn walk(site: &Path, base: &str) -> usize {
    let mut documents = 0;
    let mut next = vec![(format!("{base}.well-known/resourcesync"), Some(Capability::Description))];
    while let Some((url, capability)) = next.pop() {
        let path = url.strip_prefix(base).unwrap();
        let bytes = match fs::read(site.join(path)) {
            Ok(bytes) => bytes,
            Err(_) if documents == 0 => return 0,
            Err(error) => panic!("{path} is named, and is not there: {error}"),
        };
        let document =
            Document::from_slice(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        documents += 1;
        let index = document.head.root == Root::SitemapIndex;
        let lists =
            matches!(capability, Some(Capability::Description | Capability::CapabilityList));
        for entry in &document.entries {
            if index || lists {
                next.push((entry.loc.clone(), if index { capability } else { entry.capability }));
            } else if capability == Some(Capability::ResourceList) {
                let resource = entry.loc.strip_prefix(base).unwrap();
                assert!(site.join(resource).is_file(), "{resource} is listed, and is not there");
            }
        }
    }
    documents + feeds(site, base)
}

/// Follows the change feeds, and what `host-meta` leads to.
fn feeds(site: &Path, base: &str) -> usize {
    let read = |url: &str| -> Option<serde_json::Value> {
        let path = url.strip_prefix(base).unwrap();
        let bytes = fs::read(site.join(path)).ok()?;
        Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path}: {error}")))
    };
    let host_meta = read(&format!("{base}.well-known/host-meta.json")).unwrap();
    let mut documents = 0;
    for link in host_meta["links"].as_array().unwrap() {
        let url = link["href"].as_str().unwrap();
        let path = url.strip_prefix(base).unwrap();
        assert!(site.join(path).is_file(), "{path} is named, and is not there");
        if !path.ends_with("/collection.json") {
            continue;
        }
        let entry = read(url).unwrap();
        for (begin, link) in [("first", "next"), ("last", "prev")] {
            let mut next = entry[begin]["id"].as_str().map(str::to_owned);
            while let Some(url) = next {
                let page = read(&url).unwrap_or_else(|| panic!("{url} is not there"));
                next = page[link]["id"].as_str().map(str::to_owned);
                documents += 1;
            }
        }
    }
    documents
}

#[test]
fn killed_build_leaves_a_site_without_dangling_names() {
    let base = "https://example.org/";
    let places = places();
    let (kills, mut random) = (kills(KILLS), Random::new(seed(7)));
    let more = ["--copy", "--gzip", "--changes-per-list", "7"];
    let begun = Instant::now();
    build(&places.original, &places.site, base, &more);
    let whole = begun.elapsed().as_micros() as u64;
    let (mut killed, mut round) = (0, 0);
    while round < kills || killed <= kills / 3 {
        round += 1;
        assert!(round < 10 * kills, "only {killed} builds were killed before they ended");
        for _ in 0..12 {
            let file = places.original.join(format!("f{}", random.below(150)));
            match random.below(4) {
                0 => drop(fs::remove_file(file)),
                _ => fs::write(file, format!("{round} {}", random.below(1_000_000))).unwrap(),
            }
        }
        fs::write(places.original.join("always"), round.to_string()).unwrap();
        let mut child = command(&places.original, &places.site, base)
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(random.below(whole * 5 / 4)));
        killed += u64::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        walk(&places.site, base);
    }
    eprintln!("{killed} of {round} builds were killed");
    // The next build succeeds: except for the history, the site equals a site built without kills.
    build(&places.original, &places.site, base, &more);
    assert!(walk(&places.site, base) > 5);
    assert_equal(&places.original, &places.site.join("set/r"));
    assert_eq!(fs::read_dir(places.site.join(".abreast/site/temporary")).unwrap().count(), 0);
    let second = build(&places.original, &places.site, base, &[&more[..], &["--json"]].concat());
    let second: serde_json::Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(
        (&second["documents_written"], &second["copied"]),
        (&0.into(), &0.into()),
        "{second}"
    );
}

#[test]
fn failed_builds_end_with_an_error_code() {
    let places = places();
    fs::write(places.original.join("a"), "x").unwrap();
    let code = |site: &Path, more: &[&str]| {
        let output = run(command(&places.original, site, "https://example.org/").args(more));
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(code(&places.site, &[]).0, 2, "neither copies nor another address");
    let (number, printed) = code(&places.original.join("site"), &["--copy"]);
    assert!(number == 2 && printed.contains("lies in the folder it publishes"), "{printed}");
    let (number, printed) = code(places.original.parent().unwrap(), &["--copy"]);
    assert!(number == 2 && printed.contains("--resources-url"), "{printed}");
    fs::write(places.site.join("sitemap.xml"), "mine").unwrap();
    let (number, printed) = code(&places.site, &["--copy"]);
    assert!(
        number == 1 && printed.contains("sitemap.xml") && printed.contains("help:"),
        "{printed}"
    );
    fs::remove_file(places.site.join("sitemap.xml")).unwrap();
    assert_eq!(code(&places.site, &["--copy"]).0, 0);
    let folder = abreast_folder::Folder::open(places.site.join(".abreast")).unwrap();
    let held = folder.root().lock(b"source.lock").unwrap().unwrap();
    assert_eq!(code(&places.site, &["--copy"]).0, 10);
    drop(held);
}

#[test]
fn a_build_holds_deletions_and_files_that_are_being_written() {
    let places = places();
    for number in 0..12 {
        fs::write(places.original.join(format!("f{number}")), "x").unwrap();
    }
    let base = "https://example.org/";
    build(&places.original, &places.site, base, &["--copy"]);
    (0..8).for_each(|number| fs::remove_file(places.original.join(format!("f{number}"))).unwrap());
    let output = run(command(&places.original, &places.site, base).arg("--copy"));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(7)
            && printed.contains("8 of 12")
            && printed.contains("--confirm-deletions"),
        "{printed}"
    );
    assert!(places.site.join("set/r/f0").is_file(), "the site stays as it was");
    let mut writer = fs::File::create(places.original.join("half")).unwrap();
    writer.write_all(b"first half").unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    let output =
        run(command(&places.original, &places.site, base).args(["--copy", "--confirm-deletions"]));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(3) && printed.contains("`half` is being written"),
        "{printed}"
    );
    assert!(!places.site.join("set/r/half").exists() && !places.site.join("set/r/f0").exists());
    writer.write_all(b", second half").unwrap();
    drop(writer);
    build(&places.original, &places.site, base, &["--copy"]);
    assert_eq!(fs::read(places.site.join("set/r/half")).unwrap(), b"first half, second half");
}

#[test]
fn followed_links_are_served_and_others_are_not() {
    let places = places();
    fs::create_dir(places.original.join("real")).unwrap();
    fs::write(places.original.join("real/a"), "inside").unwrap();
    fs::write(places.site.join("secret"), "outside").unwrap();
    for (target, name) in [
        ("real", "link"),
        ("../site/secret", "out"),
        ("../site", "outer"),
        (".abreast/source.db", "db"),
    ] {
        symlink(target, places.original.join(name)).unwrap();
    }
    for follow in [true, false] {
        let source =
            Source::start(&places.original, 0, if follow { &["--follow-links"] } else { &[] });
        let list = || String::from_utf8(source.get("/set/resourcelist.xml").unwrap()).unwrap();
        // After a restart, the recorded state is served until the first scan has ended.
        eventually("the list is up to date", || list().contains("/set/r/link/a") == follow);
        let list = list();
        assert_eq!(source.get("/set/r/link/a").is_some(), follow);
        for path in ["/set/r/out", "/set/r/outer/secret", "/set/r/db"] {
            assert!(!list.contains(path));
            assert_eq!(get(&source.address, path).unwrap().0, 404, "{path}");
        }
        assert_eq!(source.stop(), Some(0));
    }
}

#[test]
fn sets_with_descriptions_and_archives_are_built_and_served() {
    let places = places();
    let place = places.site.parent().unwrap();
    for (set, file) in [("maps", "m"), ("letters", "l")] {
        fs::create_dir(places.original.join(set)).unwrap();
        fs::write(places.original.join(set).join(file), file).unwrap();
    }
    let config = place.join("abreast.toml");
    let folder = |set: &str| places.original.join(set).display().to_string();
    let data = place.join("data");
    let text = format!(
        "data = \"{}\"\n\
         [[set]]\nname = \"maps\"\ntitle = \"Old <maps>\"\ndescription = \"Drawn by hand.\"\nlicence = \"CC0\"\n\
         contact = \"maps@example.org\"\nfolder = \"{}\"\narchives = {{ every = \"1s\", keep = 3 }}\n\
         [[set]]\nname = \"letters\"\nfolder = \"{}\"\n",
        data.display(),
        folder("maps"),
        folder("letters")
    );
    fs::write(&config, text).unwrap();
    let base = "https://example.org/";
    let mut command = abreast();
    command
        .args(["build", "--copy", "--base-url", base, "--out"])
        .arg(&places.site)
        .arg("--config")
        .arg(&config);
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(walk(&places.site, base) >= 9);
    let page = fs::read_to_string(places.site.join("maps/about.html")).unwrap();
    for part in [
        "Old &lt;maps&gt;",
        "Drawn by hand.",
        "<dt>Licence</dt><dd>CC0</dd>",
        "mailto:maps@example.org",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let archive =
        Document::from_slice(&fs::read(places.site.join("maps/resourcelist-archive.xml")).unwrap())
            .unwrap();
    assert_eq!(
        (archive.head.capability, archive.entries.len()),
        (Some(Capability::ResourceListArchive), 1)
    );
    assert!(places.site.join(archive.entries[0].loc.strip_prefix(base).unwrap()).is_file());
    assert!(!places.site.join("letters/resourcelist-archive.xml").exists());

    let config = config.display().to_string();
    let source = Source::start_config(&config);
    let text = |path: &str| String::from_utf8(source.get(path).unwrap_or_default()).unwrap();
    eventually("the served set has an archived list", || {
        text("/maps/resourcelist-archive.xml").contains("<url>")
    });
    assert!(text("/maps/archived/resourcelist/1.xml").contains("/maps/r/m"));
    assert!(text("/maps/changelist-archive.xml").contains("changelist-archive"));
    assert!(text("/about.html").contains("/letters/about.html"));
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn a_site_whose_record_was_removed_is_written_again() {
    let places = places();
    for number in 0..12 {
        fs::write(places.original.join(format!("f{number}")), format!("{number}")).unwrap();
    }
    let base = "https://example.org/";
    let more = ["--copy", "--gzip", "--changes-per-list", "2"];
    build(&places.original, &places.site, base, &more);
    for number in 0..5 {
        fs::write(places.original.join(format!("f{number}")), "changed").unwrap();
    }
    build(&places.original, &places.site, base, &more);
    assert!(places.site.join("set/changelist/3.xml.gz").is_file());
    fs::write(places.site.join("robots.txt"), "User-agent: *\nDisallow: /private/\n").unwrap();
    fs::write(places.site.join("mine.html"), "mine").unwrap();
    fs::remove_file(places.original.join("f11")).unwrap();
    fs::remove_dir_all(places.site.join(".abreast")).unwrap();

    let output = run(command(&places.original, &places.site, base).args(more));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        text.contains("the record of earlier builds is missing") && text.contains("new history"),
        "{text}"
    );
    assert!(
        text.contains("files in `set/r/` that the set does not have, and that stay there: 1"),
        "{text}"
    );
    assert!(places.site.join("set/r/f11").is_file() && places.site.join("mine.html").is_file());
    assert!(
        fs::read_to_string(places.site.join("robots.txt")).unwrap().contains("/private/"),
        "it is another's"
    );
    let list = fs::read_to_string(places.site.join("set/resourcelist.xml")).unwrap();
    assert!(list.contains("/set/r/f10<") && !list.contains("/set/r/f11<"));
    // The new history comes to the names of old lists, with and without compressed documents.
    for round in 0..4 {
        for number in 0..5 {
            fs::write(
                places.original.join(format!("f{number}")),
                format!("round {round} of {number}"),
            )
            .unwrap();
        }
        build(
            &places.original,
            &places.site,
            base,
            if round % 2 == 0 { &more } else { &more[..1] },
        );
    }
    assert_eq!(fs::read(places.site.join("set/r/f3")).unwrap(), b"round 3 of 3");

    // Another base URL: the site is not recognised.
    fs::remove_dir_all(places.site.join(".abreast")).unwrap();
    let output = run(command(&places.original, &places.site, "https://example.com/").args(more));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(1) && text.contains("not written by an earlier build"),
        "{text}"
    );
}

#[test]
fn the_base_may_be_in_the_configuration() {
    let places = places();
    let place = places.original.parent().unwrap();
    let (file, folder) = (place.join("abreast.toml"), &places.original);
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("a"), "a").unwrap();
    let build = |more: &[&str]| {
        let mut command = abreast();
        command.arg("build").arg("--config").arg(&file).arg("--out").arg(&places.site).args(more);
        run(&mut command)
    };
    let set = format!("[[set]]\nname = \"set\"\nfolder = {folder:?}\n");
    fs::write(&file, &set).unwrap();
    let missing = build(&["--copy"]);
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.status.code() == Some(2) && text.contains("--base-url"), "{text}");
    fs::write(&file, format!("base_url = \"http://h.example/st\"\n{set}")).unwrap();
    let missing = build(&[]);
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.status.code() == Some(2) && text.contains("--resources-url"), "{text}");
    let built = build(&["--copy"]);
    let text = String::from_utf8_lossy(&built.stdout).into_owned();
    assert!(text.contains("abreast sync http://h.example/st/ FOLDER"), "{text}");
}

#[test]
fn copies_in_a_site_are_what_the_lists_name() {
    let places = places();
    let place = places.original.parent().unwrap();
    let (file, rdf) = (place.join("abreast.toml"), place.join("rdf"));
    fs::create_dir(&rdf).unwrap();
    fs::write(rdf.join("a.nt"), "<http://id.example/p/ada> <http://p> \"1\" .\n").unwrap();
    for name in ["lost", "altered", "kept"] {
        fs::write(places.original.join(name), name).unwrap();
    }
    let configure = |namespace: Option<&str>| {
        let papers = format!("[[set]]\nname = \"papers\"\nfolder = {:?}\n", places.original);
        let people = namespace.map(|namespace| {
            format!("[[set]]\nname = \"people\"\norigin = \"rdf\"\nfolder = {rdf:?}\nnamespace = \"{namespace}\"\n")
        });
        let base = "base_url = \"http://h.example/\"\n";
        fs::write(&file, format!("{base}{papers}{}", people.unwrap_or_default())).unwrap();
    };
    let build = |more: &[&str]| {
        let mut command = abreast();
        command
            .args(["build", "--copy", "--json", "--config"])
            .arg(&file)
            .arg("--out")
            .arg(&places.site)
            .args(more);
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let listed = |set: &str| {
        let list = fs::read(places.site.join(set).join("resourcelist.xml")).unwrap();
        let path = |loc: &str| places.site.join(loc.strip_prefix("http://h.example/").unwrap());
        let entries = Document::from_slice(&list).unwrap().entries;
        entries.iter().map(|entry| path(&entry.loc)).collect::<Vec<_>>()
    };
    configure(Some("http://id.example/"));
    build(&[]);
    let [lost, altered] = ["lost", "altered"].map(|name| places.site.join("papers/r").join(name));
    fs::remove_file(&lost).unwrap();
    fs::write(&altered, "other77").unwrap();
    assert_eq!(build(&[])["copied"], 2);
    assert_eq!(
        [&lost, &altered].map(|path| fs::read_to_string(path).unwrap()),
        ["lost", "altered"]
    );
    let time = fs::metadata(&altered).unwrap().modified().unwrap();
    fs::write(&altered, "other77").unwrap();
    fs::File::options().write(true).open(&altered).unwrap().set_modified(time).unwrap();
    assert_eq!(build(&[])["copied"], 0, "neither length nor time shows it");
    assert_eq!(build(&["--reread"])["copied"], 1);
    let before = listed("people");
    configure(Some("http://id.example/p/"));
    build(&[]);
    let after = listed("people");
    assert!(before != after && after.iter().all(|path| path.is_file()), "{after:?}");
    assert!(before.iter().all(|path| !path.exists()));
    configure(None);
    let notices = build(&[])["notices"].to_string();
    assert!(notices.contains("`people/r/`") && after[0].exists(), "{notices}");
    build(&[]);
    assert!(!places.site.join("people").exists());
    assert!(places.site.join("papers/r/kept").exists());
}
