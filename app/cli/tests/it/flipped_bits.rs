//! One flipped bit in each kind of file of a store: the server starts and serves the rest, `check` names the file, and `repair` makes it
//! again or reports the loss.

use crate::world::{Source, abreast};
use abreast_testkit::bits::flip;
use abreast_testkit::{eventually, eventually_ok, folder, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// End of the path of a kind of file, the finding for this kind, and whether `repair` restores exactly the former bytes.
const KINDS: &[(&str, &str, bool)] = &[
    ("archives/papers/record", "archives.record", true),
    ("archives/papers/list-*.xml.gz", "archives.list", false),
    ("resources-*/record.xml", "dumps.record", false),
    ("resources-*-1.zip", "dumps.package", false),
    ("resources-*-1.xml", "dumps.manifest", true),
    ("resources-*-1.v0.1-1.zip", "dumps.derived", false),
    ("resources-*-1.v0.1-1.zip.sha256", "dumps.derived", false),
    ("changes-*/record.xml", "dumps.record", false),
    ("changes-*-1.zip", "dumps.package", false),
    ("changes-*-1.xml", "dumps.manifest", true),
    ("snapshots/things/*.json", "snapshots.record", false),
    ("snapshots/things/*.nt", "snapshots.digest", false),
    ("snapshots/things/*.ntz", "snapshots.digest", false),
    ("snapshots/things/*.rdf", "snapshots.digest", false),
    ("snapshots/things/*.rdfz", "snapshots.digest", false),
    ("contents/packed/*.segment", "contents.", false),
    ("contents/packed/*.index", "contents.index", false),
    ("temporary/things.read", "temporary.record", false),
    ("notified.json", "notified.record", false),
    ("served.json", "served.record", false),
    ("tokens.json", "tokens.record", true),
];

/// What has tests of its own, or no content.
const OTHERS: &[&str] =
    &["source.db", "source.db-wal", "source.db-shm", "hub.db", "hub.db-wal", "hub.db-shm", "lock"];

fn is_of_kind(path: &str, kind: &str) -> bool {
    match kind.split_once('*') {
        None => path.ends_with(kind),
        Some((begin, end)) => {
            let rest = path.rfind(begin).map(|at| &path[at + begin.len()..]);
            let name = rest.and_then(|rest| rest.strip_suffix(end));
            // `resources-X-1.zip` is not `resources-X-1.v0.1-1.zip`.
            name.is_some_and(|name| {
                !(name.contains(".v0.1") || name.contains("/resources-") && end.starts_with('/'))
            })
        }
    }
}

struct World {
    place: tempfile::TempDir,
}

impl World {
    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A configuration with that store.
    fn config(&self, store: &Path) -> String {
        let path = self.at("abreast.toml");
        let shown = |path: &Path| path.display().to_string();
        let (store, papers, things) =
            (shown(store), shown(&self.at("papers")), shown(&self.at("things")));
        let text = format!(
            "data = {store:?}\n[notify]\ndebounce = \"10ms\"\n\
             [[set]]\nname = \"papers\"\nfolder = {papers:?}\nversions = 1000\narchives = {{ every = \"1s\", keep = 9 }}\n\
             dumps = {{ every = \"1s\", changes = true }}\n\
             [[set]]\nname = \"things\"\norigin = \"rdf\"\nfolder = {things:?}\nnamespace = \"http://example.org/\"\n"
        );
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A store with files of all kinds.
    fn new() -> Self {
        let world = Self { place: tempfile::tempdir().unwrap() };
        for name in ["papers", "things"] {
            fs::create_dir(world.at(name)).unwrap();
        }
        fs::write(world.at("papers/a.txt"), "one").unwrap();
        let triple = "<http://example.org/a> <http://example.org/p> \"text\" .\n";
        fs::write(world.at("things/a.nt"), triple).unwrap();
        let store = world.at("store");
        fs::create_dir(&store).unwrap();
        let made = run(abreast()
            .args(["token", "create", "--name", "admin", "--scope", "admin", "--config"])
            .arg(world.config(&store)));
        assert!(made.status.success(), "{made:?}");
        // What is read earlier is not recorded as read: it may change within the same time.
        eventually("the file of RDF is old enough", || {
            let written = fs::metadata(world.at("things/a.nt")).unwrap().modified().unwrap();
            written.elapsed().is_ok_and(|age| age > Duration::from_secs(1))
        });
        let source = Source::start_config(&world.config(&store));
        let mut number = 0;
        eventually_ok("there is a file of each kind", || {
            // Not faster than dumps are made.
            if number % 40 == 0 {
                fs::write(world.at("papers/a.txt"), number.to_string()).unwrap();
            }
            number += 1;
            source.get("/papers/v0.1/dump.zip");
            source.get("/things/sdshare");
            source.get("/things/sdshare/snapshots");
            let paths = paths(&store);
            let is_missing = |kind: &&str| {
                !kind.contains("/packed/*.index")
                    && !paths.iter().any(|path| is_of_kind(path, kind))
            };
            let missing: Vec<_> = KINDS.iter().map(|(kind, ..)| *kind).filter(is_missing).collect();
            if missing.is_empty() { Ok(()) } else { Err(format!("not {missing:?}")) }
        });
        assert_eq!(source.stop(), Some(0));
        world
    }

    /// A copy of the store.
    fn copy(&self, name: &str) -> PathBuf {
        let (from, to) = (self.at("store"), self.at(name));
        for path in paths(&from) {
            let target = to.join(&path);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(from.join(&path), target).unwrap();
        }
        to
    }
}

/// The files of a folder, relative to it.
fn paths(of: &Path) -> Vec<String> {
    let paths = folder::paths(of).into_iter().filter(|path| path.is_file());
    paths.map(|path| path.strip_prefix(of).unwrap().to_str().unwrap().to_owned()).collect()
}

fn flip_in(path: &Path, part: usize, parts: usize) {
    let mut bytes = fs::read(path).unwrap();
    let bit = bytes.len() * 8 * part / parts;
    flip(&mut bytes, bit as u64);
    fs::write(path, bytes).unwrap();
}

/// The findings: code, place and message.
fn check(store: &Path) -> Vec<(String, String)> {
    let output = run(abreast().arg("check").arg(store).args(["--read-data", "--json"]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = lines.filter(|line| line["type"] == "finding" && line["severity"] == "error");
    let found = found.map(|line| {
        let field = |name: &str| line[name].as_str().unwrap().to_owned();
        (field("code"), format!("{} {}", field("location"), field("message")))
    });
    let found: Vec<_> = found.collect();
    assert_eq!(output.status.code(), Some(i32::from(!found.is_empty())), "{text}");
    found
}

#[test]
fn a_flipped_bit_in_any_file_of_a_store_costs_only_that_file() {
    let world = World::new();
    let store = world.at("store");
    assert_eq!(check(&store), []);
    let all = paths(&store);
    let unknown: Vec<_> = all
        .iter()
        .filter(|path| !OTHERS.iter().any(|other| path.ends_with(other)))
        .filter(|path| !KINDS.iter().any(|(kind, ..)| is_of_kind(path, kind)))
        .collect();
    assert!(unknown.is_empty(), "kinds of files without a row: {unknown:?}");
    let mut failed = Vec::new();
    for (number, (kind, code, is_restored)) in KINDS.iter().enumerate() {
        let Some(path) = all.iter().find(|path| is_of_kind(path, kind)) else {
            failed.push(format!("{kind}: there is none"));
            continue;
        };
        let (served, repaired) =
            (world.copy(&format!("served-{number}")), world.copy(&format!("repaired-{number}")));
        for store in [&served, &repaired] {
            flip_in(&store.join(path), 1, 2);
        }
        let findings = check(&served);
        let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
        let is_named = |(found, place): &(String, String)| {
            found.starts_with(code) && (code.starts_with("contents") || place.contains(name))
        };
        if !findings.iter().any(is_named) {
            failed.push(format!("{kind}: check finds {findings:?}"));
        }
        let source = std::panic::catch_unwind(|| Source::start_config(&world.config(&served)));
        match source {
            Err(_) => failed.push(format!("{kind}: the server does not start")),
            Ok(source) => {
                for path in ["/papers/resourcelist.xml", "/papers/r/a.txt", "/things/sdshare"] {
                    if source.get(path).is_none() {
                        failed.push(format!("{kind}: {path} is not served"));
                    }
                }
                let lists = source.get("/papers/resourcelist-archive.xml").unwrap_or_default();
                if !String::from_utf8_lossy(&lists).contains("/archived/resourcelist/1.xml") {
                    failed.push(format!("{kind}: archived lists are lost"));
                }
                assert_eq!(source.stop(), Some(0));
            }
        }
        let output = run(abreast().arg("repair").arg(&repaired).arg("--read-data"));
        let steps = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || !check(&repaired).is_empty() {
            failed.push(format!("{kind}: not repaired: {output:?}, {:?}", check(&repaired)));
        }
        if *code == "dumps.manifest" && !steps.contains("restore the manifest") {
            failed.push(format!("{kind}: no step: {steps}"));
        }
        let same = || fs::read(repaired.join(path)).ok() == fs::read(store.join(path)).ok();
        if *is_restored && *code != "archives.record" && !same() {
            failed.push(format!("{kind}: not as before: {steps}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn check_sees_each_flipped_bit_of_small_records() {
    let world = World::new();
    let copy = world.copy("copy");
    for (kind, code, _) in KINDS.iter().filter(|(_, code, _)| code.ends_with(".record")) {
        let path = paths(&copy).into_iter().find(|path| is_of_kind(path, kind)).unwrap();
        let whole = fs::read(copy.join(&path)).unwrap();
        for part in 0..12 {
            flip_in(&copy.join(&path), part, 12);
            let findings = check(&copy);
            assert!(
                findings.iter().any(|(found, _)| found == code),
                "{kind}, {part} of 12: {findings:?}"
            );
            fs::write(copy.join(&path), &whole).unwrap();
        }
    }
    assert_eq!(check(&copy), []);
}
