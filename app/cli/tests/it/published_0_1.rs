//! Documents and dumps of ResourceSync 0.1 as the built program publishes them, read by others.

use crate::world::{Source, abreast, get};
use abreast_resourcesync::v0_1::{CHANGE_SET, Document, Entry, MIRROR, Root, SUBJECT};
use abreast_resourcesync::v1_1;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::folder::files;
use abreast_testkit::{Running, eventually, eventually_some, kills, provided, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Kills of the Source.
const KILLS: u64 = 15;

/// Reads a dump with nothing but the standard library of Python, and prints the digest of each
/// resource by its URI.
const READ_ZIP: &str = r#"
import base64, hashlib, json, sys, zipfile
import xml.etree.ElementTree as ET
S, R = "{http://www.sitemaps.org/schemas/sitemap/0.9}", "{http://www.openarchives.org/rs/terms/}"
dump = zipfile.ZipFile(sys.argv[1])
assert dump.testzip() is None
names, found = set(dump.namelist()) - {"manifest.xml"}, {}
for url in ET.fromstring(dump.read("manifest.xml")).findall(S + "url"):
    path = url.find(R + "path").text
    data = dump.read(path)
    names.discard(path)
    assert int(url.find(R + "size").text) == len(data), path
    for fixity in url.findall(R + "fixity"):
        digest = hashlib.new(fixity.get("type").replace("-", ""), data).digest()
        assert base64.b64encode(digest).decode() == fixity.text, path
    found[url.find(S + "loc").text] = hashlib.md5(data).hexdigest()
assert not names, names
print(json.dumps(found))
"#;

/// Reads a WARC file with warcio: the manifest, and the digest of each resource by its URI.
const READ_WARC: &str = r#"
import hashlib, json, sys
from warcio.archiveiterator import ArchiveIterator
kinds, found = [], {}
with open(sys.argv[1], "rb") as stream:
    for record in ArchiveIterator(stream, check_digests="raise"):
        kinds.append(record.rec_type)
        data = record.content_stream().read()
        if record.rec_type == "response":
            assert record.http_headers.get_statuscode() == "200"
            assert int(record.http_headers.get_header("Content-Length")) == len(data)
            found[record.rec_headers.get_header("WARC-Target-URI")] = hashlib.md5(data).hexdigest()
        elif record.rec_type == "resource":
            assert data.startswith(b"<?xml"), data[:100]
assert kinds[:2] == ["warcinfo", "resource"], kinds
assert set(kinds[2:]) <= {"response"}, kinds
print(json.dumps(found))
"#;

/// Asks for the version of a resource at a date, as `memento_client` finds it.
const MEMENTO_CLIENT: &str = r#"
import sys
from memento_client import MementoClient
client = MementoClient(timegate_uri=sys.argv[1], check_native_timegate=False)
info = client.get_memento_info(sys.argv[2], client.convert_to_datetime(sys.argv[3]))
print(info["mementos"]["closest"]["uri"][0])
"#;

fn path_in(url: &str) -> String {
    format!("/{}", url.splitn(4, '/').nth(3).unwrap())
}

fn read(source: &Source, path: &str) -> Document {
    let bytes = source.get(path).unwrap_or_else(|| panic!("{path} answers"));
    Document::from_slice(&bytes).unwrap()
}

fn prev(document: &Document) -> Option<String> {
    let mut links = document.head.links.iter();
    let found = links.find(|link| link.has_rel("prev") && link.has_rel(CHANGE_SET));
    found.map(|link| path_in(&link.href))
}

/// What a script prints as JSON.
fn digests(python: &Path, script: &str, file: &Path) -> BTreeMap<String, String> {
    let output = run(Command::new(python).args(["-c", script]).arg(file));
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{problem}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn copies_are_made_from_our_0_1_dumps() {
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir_all(original.join("d")).unwrap();
    for (name, content) in [("a b.html", "<p>hello"), ("d/é&.txt", "text"), ("empty", "")] {
        fs::write(original.join(name), content).unwrap();
    }
    fs::write(original.join("large.bin"), vec![7; 3_000_000]).unwrap();
    let source = Source::start(&original, 0, &["--dumps", "on-demand"]);
    eventually("the set is read", || read(&source, "/set/v0.1/sitemap.xml").entries.len() == 4);
    for ending in ["warc.gz", "zip"] {
        let path = format!("/set/v0.1/dump.{ending}");
        eventually_some("the dump is made", || source.get(&path));
        let copy = temporary.path().join(ending);
        let url = format!("{}set/v0.1/dump.{ending}", source.url());
        let base = format!("{}set/r/", source.url());
        let mut command = abreast();
        command.args(["sync", &url]).arg(&copy).args(["--base", &base, "--quiet"]);
        let output = run(&mut command);
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && problem.is_empty(), "{ending}: {problem}");
        let mut copied = files(&copy);
        copied.retain(|name, _| !name.starts_with(".abreast"));
        assert_eq!(copied, files(&original), "{ending}");
    }
}

#[test]
fn other_programs_read_our_0_1_dumps() {
    let Some(python) = provided("Python, warcio and pywb read a dump", "ABREAST_TEST_PYTHON")
    else {
        return;
    };
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir_all(original.join("d")).unwrap();
    fs::write(original.join("a b.html"), "<p>hello").unwrap();
    fs::write(original.join("d/é&.txt"), "text ".repeat(1_000)).unwrap();
    fs::write(original.join("empty"), "").unwrap();
    fs::write(original.join("large.bin"), vec![7; 3_000_000]).unwrap();
    let source = Source::start(&original, 0, &["--dumps", "on-demand", "--digests", "both"]);
    let expected: BTreeMap<String, String> = files(&original)
        .into_iter()
        .map(|(name, content)| {
            let name = name.to_str().unwrap().replace(' ', "%20").replace('é', "%C3%A9");
            (format!("{}set/r/{name}", source.url()), md5_hex(&content))
        })
        .collect();
    assert_eq!(expected.len(), 4);
    eventually("the set is read", || read(&source, "/set/v0.1/sitemap.xml").entries.len() == 4);
    // Nobody asked for a dump before: the first request makes it.
    let asked = get(&source.address, "/set/v0.1/dump.zip").unwrap();
    assert!(matches!(asked.0, 200 | 202), "{}", asked.0);
    for (ending, script) in [("zip", READ_ZIP), ("warc.gz", READ_WARC)] {
        let path = format!("/set/v0.1/dump.{ending}");
        let bytes = eventually_some("the dump is made", || source.get(&path));
        let file = temporary.path().join(format!("dump.{ending}"));
        fs::write(&file, bytes).unwrap();
        assert_eq!(digests(&python, script, &file), expected, "{ending}");
    }
    let sitemap = read(&source, "/set/v0.1/sitemap.xml");
    let dumps = sitemap.head.links.iter().filter(|link| link.href.contains("/v0.1/dump."));
    assert_eq!(dumps.count(), 2);

    let warc = temporary.path().join("dump.warc.gz");
    let check = run(Command::new(&python).args(["-m", "warcio.cli", "check", "-v"]).arg(&warc));
    let printed = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.success() && printed.contains("digest pass"), "{printed}");
    assert!(!printed.contains("digest failed") && !printed.contains("not chunked"), "{printed}");
    replay(&python, &warc, &source, &original);
}

/// Starts pywb at a free port. Where another program took the port meanwhile, pywb ends, and is
/// started at another.
fn pywb(python: &Path, place: &Path) -> (Running, String) {
    let script = "import sys; from pywb.apps.cli import wayback; wayback(sys.argv[1:])";
    for _ in 0..10 {
        let port = abreast_testkit::http::unused_address().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(python);
        command.current_dir(place).args(["-c", script, "-p", &port.to_string(), "-b", "127.0.0.1"]);
        let mut server =
            Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let mut ended = false;
        eventually("pywb answers, or ends", || {
            ended = server.0.try_wait().unwrap().is_some();
            ended || get(&address, "/").is_some()
        });
        if !ended {
            return (server, address);
        }
    }
    panic!("pywb ends at each start");
}

/// Lets pywb index the dump and replay its resources.
fn replay(python: &Path, warc: &Path, source: &Source, original: &Path) {
    let place = warc.parent().unwrap().join("pywb");
    fs::create_dir(&place).unwrap();
    let manage = |arguments: &[&str]| {
        let script = "import sys; from pywb.manager.manager import main; main(sys.argv[1:])";
        let mut command = Command::new(python);
        let output = run(command.current_dir(&place).args(["-c", script]).args(arguments));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    manage(&["init", "dump"]);
    manage(&["add", "dump", warc.to_str().unwrap()]);
    let (_server, address) = pywb(python, &place);
    for (name, path) in [("a%20b.html", "a b.html"), ("d/%C3%A9&.txt", "d/é&.txt")] {
        let url = format!("/dump/2026id_/{}set/r/{name}", source.url());
        // It leads to the exact time first.
        let output = run(Command::new(python).args([
            "-c",
            "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())",
            &format!("http://{address}{url}"),
        ]));
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{problem}");
        assert_eq!(output.stdout, fs::read(original.join(path)).unwrap(), "{name}");
    }
}

#[test]
fn memento_client_finds_versions_from_0_1_links() {
    let Some(python) = provided("memento_client asks us", "ABREAST_TEST_PYTHON") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir(&original).unwrap();
    let source = Source::start(&original, 0, &["--versions", "all"]);
    let mut change_set = read(&source, "/set/v0.1/changeset.xml");
    for number in 1..=2 {
        fs::write(original.join("a b"), format!("version {number}")).unwrap();
        eventually("the change is published", || {
            change_set = read(&source, "/set/v0.1/changeset.xml");
            change_set.entries.len() == number
        });
    }
    for (number, entry) in (1..).zip(&change_set.entries) {
        let target = |rel: &str| {
            let found = entry.links.iter().find(|link| link.has_rel(rel));
            found.unwrap_or_else(|| panic!("{rel}: {entry:?}")).href.clone()
        };
        let memento = source.get(&path_in(&target("memento"))).unwrap();
        assert_eq!(memento, format!("version {number}").into_bytes());
        // The link has the resource behind the TimeGate's own address.
        let gate = target("timegate");
        let gate = gate.strip_suffix(&entry.loc).unwrap();
        let date = abreast_source::versions::http_date(entry.time.unwrap().instant);
        let mut command = Command::new(&python);
        let output = run(command.args(["-c", MEMENTO_CLIENT, gate, &entry.loc, &date]));
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "{problem}");
        // Both may be of one second, which dates cannot tell apart.
        let any = change_set.entries.iter().any(|entry| {
            entry.links.iter().any(|link| link.has_rel("memento") && link.href == found)
        });
        assert!(any, "{found}");
    }
}

#[test]
fn closed_change_sets_stay_over_kills() {
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir(&original).unwrap();
    let arguments = ["--changes-per-list", "4"];
    let mut source = Source::start(&original, 0, &arguments);
    let port = source.port();
    let mut closed: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for round in 0..kills(KILLS) {
        for number in 0..5 {
            fs::write(original.join(format!("f{number}")), format!("{round}")).unwrap();
        }
        let path = eventually_some("change sets are closed", || {
            prev(&read(&source, "/set/v0.1/changeset.xml"))
        });
        let mut next = Some(path);
        let mut newest = None;
        while let Some(path) = next {
            let bytes = source.get(&path).unwrap();
            let document = Document::from_slice(&bytes).unwrap();
            let was = closed.entry(path.clone()).or_insert_with(|| bytes.clone());
            assert_eq!(was, &bytes, "{path}");
            let times: Vec<_> =
                document.entries.iter().map(|entry| entry.time.unwrap().instant).collect();
            assert!(times.is_sorted() && !times.is_empty());
            if let Some(newest) = newest {
                assert!(times.last().unwrap() < &newest, "{path} is before what leads to it");
            }
            newest = times.first().copied();
            next = prev(&document);
        }
        source.kill();
        source = Source::start(&original, port, &arguments);
    }
    // Both versions have the same changes, all of them, in one order.
    eventually("the changes of both versions are the same", || {
        let mut old = Vec::new();
        let mut next = Some("/set/v0.1/changeset.xml".to_owned());
        while let Some(path) = next {
            let document = read(&source, &path);
            let change =
                |entry: &Entry| (entry.loc.clone(), entry.change, entry.time.unwrap().instant);
            old.splice(0..0, document.entries.iter().map(change));
            next = prev(&document);
        }
        let list = |path: &str| v1_1::Document::from_slice(&source.get(path).unwrap()).unwrap();
        let top = list("/set/changelist.xml");
        let lists = match top.head.root {
            Root::UrlSet => vec![top],
            Root::SitemapIndex => {
                top.entries.iter().map(|entry| list(&path_in(&entry.loc))).collect()
            }
        };
        let entries = lists.iter().flat_map(|list| &list.entries);
        let change = |entry: &v1_1::Entry| {
            (entry.loc.clone(), entry.change, entry.datetime.unwrap().instant)
        };
        !old.is_empty() && old == entries.map(change).collect::<Vec<_>>()
    });
}

#[test]
fn settings_make_categories_mirrors_and_discovery() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, data) = (temporary.path().join("original"), temporary.path().join("data"));
    fs::create_dir_all(original.join("zoology")).unwrap();
    fs::write(original.join("zoology/frog.pdf"), "frog").unwrap();
    fs::write(original.join("other.txt"), "other").unwrap();
    let config = temporary.path().join("abreast.toml");
    let write = |title: &str| {
        let text = format!(
            "data = {data:?}\n[[set]]\nname = \"set\"\nfolder = {original:?}\n\
             resourcesync_0_1 = {{ oai_pmh = \"https://example.org/oai\", robots = true }}\n\
             [[set.links]]\nmatch = \"*.pdf\"\nrel = \"duplicate\"\nhref = \"http://mirror.example.org/{{path}}\"\n\
             [[set.categories]]\nmatch = \"zoology/**\"\nuri = \"http://id.example.org/frogs\"\ntitle = \"{title}\"\n\
             [[set.categories]]\nmatch = \"*.pdf\"\nword = \"Kröten & Co\"\n"
        );
        fs::write(&config, text).unwrap();
    };
    write("Frösche");
    let source = Source::start_config(config.to_str().unwrap());
    eventually("the set is read", || read(&source, "/set/v0.1/sitemap.xml").entries.len() == 3);
    let sitemap = read(&source, "/set/v0.1/sitemap.xml");
    let of = |document: &Document, name: &str| {
        document.entries.iter().rfind(|entry| entry.loc.ends_with(name)).unwrap().clone()
    };
    let frog = of(&sitemap, "frog.pdf");
    let subject = frog.links.iter().find(|link| link.rel == SUBJECT).unwrap();
    assert_eq!(
        (subject.href.as_str(), subject.title.as_deref()),
        ("http://id.example.org/frogs", Some("Frösche"))
    );
    assert_eq!(frog.metas[0].content, "Kröten & Co");
    let mirror = frog.links.iter().find(|link| link.has_rel(MIRROR)).unwrap();
    assert_eq!(mirror.href, "http://mirror.example.org/zoology/frog.pdf");
    let other = of(&sitemap, "other.txt");
    assert!(other.links.is_empty() && other.metas.is_empty());
    assert!(sitemap.entries.iter().any(|entry| entry.protocol.is_some()));
    let text = |path: &str| String::from_utf8(source.get(path).unwrap()).unwrap();
    assert!(text("/robots.txt").contains("/set/v0.1/sitemap.xml"));
    assert!(text("/.well-known/host-meta").contains("/set/v0.1/sitemap.xml"));
    assert!(text("/.well-known/host-meta.json").contains("/set/v0.1/sitemap.xml"));
    assert!(text("/set/resourcelist.xml").contains("rel=\"http://purl.org/dc/terms/subject\""));
    let port = source.port();
    source.stop();
    // A changed title is a change of all resources that have the title.
    write("Kröten");
    let source = Source::start_config_at(config.to_str().unwrap(), port);
    let changes = eventually_some("the changed rule is a change", || {
        let changes = read(&source, "/set/v0.1/changeset.xml");
        (!changes.entries.is_empty()).then_some(changes)
    });
    assert_eq!(changes.entries.len(), 1);
    let frog = of(&changes, "frog.pdf");
    assert!(frog.links.iter().any(|link| link.title.as_deref() == Some("Kröten")));
}

#[test]
fn a_built_site_has_0_1_documents() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, site) = (temporary.path().join("original"), temporary.path().join("site"));
    fs::create_dir(&original).unwrap();
    for number in 0..5 {
        fs::write(original.join(format!("f{number}")), "first").unwrap();
    }
    let build = || {
        let mut command = crate::world::abreast();
        command.arg("build").arg(&original).arg("--out").arg(&site).args([
            "--base-url",
            "https://example.org/",
            "--copy",
            "--name",
            "set",
            "--changes-per-list",
            "2",
        ]);
        let output = run(&mut command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    build();
    for number in 0..5 {
        fs::write(original.join(format!("f{number}")), "second one").unwrap();
    }
    build();
    let read = |path: &str| Document::from_slice(&fs::read(site.join(path)).unwrap()).unwrap();
    assert_eq!(read("set/v0.1/sitemap.xml").entries.len(), 5);
    assert!(site.join(".well-known/host-meta").is_file());
    let (mut count, mut next) = (0, Some("/set/v0.1/changeset.xml".to_owned()));
    while let Some(path) = next {
        let document = read(path.trim_start_matches('/'));
        count += document.entries.len();
        next = prev(&document);
    }
    assert_eq!(count, 5);
    assert!(site.join("set/v0.1/changesets/1.xml").is_file());
}
