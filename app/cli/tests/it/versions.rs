//! Versions over HTTP: found by another client of RFC 7089, and never lost or torn by kills.

use crate::crash::{change_lists, recorded, spawn, write_version, writer};
use crate::world::{Source, get};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::{Random, eventually, kills, provided, run, seed};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Kills of the Source.
const KILLS: u64 = 40;
/// Files that the writer knows.
const FILES: u64 = 90;
const KEPT: usize = 3;

/// Asks for the version of a resource at each date, as `memento_client` finds it, one JSON object a
/// line.
const MEMENTO_CLIENT: &str = r#"
import json, sys
from memento_client import MementoClient
# Its own TimeGate does not answer: only the resource's own can be used.
client = MementoClient(timegate_uri="http://127.0.0.1:9/", check_native_timegate=True)
for date in sys.argv[2:]:
    info = client.get_memento_info(sys.argv[1], client.convert_to_datetime(date))
    found = {name: one["uri"][0] for name, one in info["mementos"].items()}
    found["timegate"] = info["timegate_uri"]
    found["status"] = info["mementos"]["closest"].get("http_status_code")
    print(json.dumps(found))
"#;

fn json(source: &Source, path: &str) -> Option<serde_json::Value> {
    Some(serde_json::from_slice(&source.get(path)?).unwrap())
}

fn path_in(url: &str) -> String {
    format!("/{}", url.splitn(4, '/').nth(3).unwrap())
}

/// Time to address of each version, `None` where it was deleted.
fn timemap(source: &Source, name: &str) -> Option<BTreeMap<String, Option<String>>> {
    let map = json(source, &format!("/timemap/json/{}set/r/{name}", source.url()))?;
    assert_eq!(map["next"], serde_json::Value::Null, "one page is enough here");
    let versions = map["mementos"]["list"].as_array().unwrap().iter();
    Some(
        versions
            .map(|version| {
                let uri = path_in(version["uri"].as_str().unwrap());
                (
                    version["datetime"].as_str().unwrap().to_owned(),
                    version["deleted"].is_null().then_some(uri),
                )
            })
            .collect(),
    )
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn memento_client_finds_the_version_of_each_date() {
    let Some(python) = provided("memento_client asks us", "ABREAST_TEST_PYTHON") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir(&original).unwrap();
    let name = "a file.txt";
    fs::write(original.join(name), "version 0").unwrap();
    let source = Source::start(&original, 0, &["--versions", "all"]);
    let in_url = "a%20file.txt";
    let mut dates = Vec::new();
    for number in 0..3 {
        if number > 0 {
            let second = seconds();
            eventually("another second begins", || seconds() > second);
            fs::write(original.join(name), format!("version {number}")).unwrap();
        }
        eventually("the version is published", || {
            timemap(&source, in_url).is_some_and(|versions| versions.len() == number + 1)
        });
        let newest = timemap(&source, in_url).unwrap().into_keys().next_back().unwrap();
        dates.push(newest);
    }
    let http_date = |date: &str| {
        let time = abreast_webtypes::W3cDatetime::parse(date.as_bytes()).unwrap().instant;
        abreast_source::versions::http_date(time)
    };
    let asked: Vec<String> = dates.iter().map(|date| http_date(date)).collect();
    let url = format!("{}set/r/{in_url}", source.url());
    let mut command = Command::new(python);
    let output = run(command
        .args(["-c", MEMENTO_CLIENT, &url, "Thu, 01 Jan 2015 00:00:00 GMT"])
        .args(&asked));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    let found: Vec<serde_json::Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |found: &serde_json::Value, which: &str| {
        String::from_utf8(source.get(&path_in(found[which].as_str()?))?).ok()
    };
    assert_eq!(found.len(), 4);
    for (found, number) in found.iter().zip([0, 0, 1, 2]) {
        assert_eq!(found["timegate"], format!("{}timegate/{url}", source.url()));
        assert_eq!(found["status"], 200);
        assert_eq!(text(found, "closest").unwrap(), format!("version {number}"));
        assert_eq!(text(found, "first").unwrap(), "version 0");
        assert_eq!(text(found, "last").unwrap(), "version 2");
        assert_eq!(text(found, "next"), (number < 2).then(|| format!("version {}", number + 1)));
        assert_eq!(text(found, "prev"), (number > 0).then(|| format!("version {}", number - 1)));
    }
}

#[test]
fn kills_lose_no_version_that_is_kept_and_tear_none() {
    let (kills, seed) = (kills(KILLS), seed(1));
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir(&original).unwrap();
    let mut random = Random::new(seed);
    for number in 0..60 {
        write_version(&original, number, 0);
    }
    let arguments = ["--versions", &KEPT.to_string(), "--changes-per-list", "40"];
    let mut source = Source::start(&original, 0, &arguments);
    let port = source.port();
    let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(BTreeMap::new())));
    let helpers = [
        spawn(writer(original.clone(), seed), &stop),
        spawn(reader(source.address.clone(), seed, Arc::clone(&seen)), &stop),
    ];
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(random.below(150)));
        source.kill();
        if random.below(4) == 0 {
            Source::kill_at_start(
                &original,
                port,
                &arguments,
                Duration::from_millis(random.below(150)),
            );
        }
        source = Source::start(&original, port, &arguments);
    }
    stop.store(true, Ordering::Relaxed);
    for helper in helpers {
        helper.join().unwrap();
    }
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 20, "only {} versions were read", seen.len());
    recorded(&source, &original);

    // Every file has the newest of its versions that the log knows, as many as are kept, with the
    // bytes recorded.
    let expected = newest_versions(&source);
    let mut listed = BTreeMap::new();
    eventually("what is beyond the count is dropped", || {
        listed =
            names().filter_map(|name| Some((name.clone(), timemap(&source, &name)?))).collect();
        listed.values().all(|versions: &BTreeMap<_, _>| versions.len() <= KEPT)
    });
    let mut contents = BTreeSet::new();
    for (name, versions) in &listed {
        // The base is in no Change List.
        let from = expected[name].keys().next();
        let recorded: BTreeMap<_, _> =
            versions.range(from.cloned().unwrap_or_default()..).collect();
        assert_eq!(
            recorded.keys().copied().collect::<Vec<_>>(),
            expected[name].keys().collect::<Vec<_>>(),
            "{name}"
        );
        for (time, uri) in versions {
            let Some(uri) = uri else { continue };
            let body = source
                .get(uri)
                .unwrap_or_else(|| panic!("{name} of {time} is listed and not there"));
            let digest = digest(&body);
            assert!(seen.get(uri).is_none_or(|before| *before == digest), "{uri} changed");
            if let Some(of_record) = expected[name].get(time) {
                assert_eq!(of_record.as_ref(), Some(&digest), "{name} of {time}");
            }
            contents.insert(digest);
        }
    }
    assert!(
        listed.len() > 80 && contents.len() > 100,
        "{} files, {} contents",
        listed.len(),
        contents.len()
    );
    // What killed processes left behind is found, and nothing else is removed.
    let folder = original.join(".abreast/contents");
    eventually("only what is needed is kept", || count(&folder) == contents.len());
}

fn names() -> impl Iterator<Item = String> {
    (0..FILES).map(|number| format!("f{number:03}.txt"))
}

/// The newest versions in the log: name to time to digest, `None` where it was deleted.
fn newest_versions(source: &Source) -> BTreeMap<String, BTreeMap<String, Option<String>>> {
    let mut all: BTreeMap<String, BTreeMap<String, Option<String>>> =
        names().map(|name| (name, BTreeMap::new())).collect();
    for entry in change_lists(source).unwrap().into_iter().flat_map(|list| list.entries) {
        let versions = all.get_mut(entry.loc.rsplit('/').next().unwrap()).unwrap();
        let digest = (!entry.digests.is_empty()).then(|| entry.digests.to_string());
        versions.insert(entry.datetime.unwrap().instant.to_string(), digest);
        while versions.len() > KEPT {
            versions.pop_first();
        }
    }
    all
}

/// Reads versions all the time: an address means the same bytes for ever, whatever is killed.
fn reader(
    address: String,
    seed: u64,
    seen: Arc<Mutex<BTreeMap<String, String>>>,
) -> impl FnMut() + Send {
    let mut random = Random::new(seed + 2_000);
    move || {
        std::thread::sleep(Duration::from_millis(2));
        let name = format!("f{:03}.txt", random.below(FILES));
        let timemap = get(&address, &format!("/timemap/json/http://{address}/set/r/{name}"));
        let Some((status, body)) = timemap else { return };
        assert!(matches!(status, 200 | 404 | 503), "{status}");
        if status != 200 {
            return;
        }
        let map: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let versions = map["mementos"]["list"].as_array().unwrap();
        let chosen = &versions[random.below(versions.len() as u64) as usize];
        let uri = path_in(chosen["uri"].as_str().unwrap());
        match get(&address, &uri) {
            Some((200, body)) => {
                let digest = digest(&body);
                let before = seen.lock().unwrap().insert(uri.clone(), digest.clone());
                assert!(before.is_none_or(|before| before == digest), "{uri} changed");
            }
            Some((410, _)) => assert_eq!(chosen["deleted"], true),
            // Dropped since the list was read, or the Source is just starting.
            Some((status, _)) => assert!(matches!(status, 404 | 503), "{status}"),
            None => {}
        }
    }
}

fn digest(body: &[u8]) -> String {
    format!("md5:{}", md5_hex(body))
}

/// Kept contents in the folder, as another process than the Source sees them.
fn count(folder: &Path) -> usize {
    let mut count = 0;
    let view = abreast_contents::View::open(folder).unwrap();
    view.visit(&mut |_, _| {
        count += 1;
        Ok(())
    })
    .unwrap();
    count
}

#[test]
fn lists_link_to_nothing_that_is_not_there() {
    let place = tempfile::tempdir().unwrap();
    let (folder, data) = (place.path().join("rdf"), place.path().join("data"));
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, value: u32| {
        let text = format!("<http://id.example/{name}> <http://p> \"{value}\" .\n");
        fs::write(place.path().join("part"), text).unwrap();
        fs::rename(place.path().join("part"), folder.join(format!("{name}.nt"))).unwrap();
    };
    let serve = |versions: bool| {
        let mut command = crate::world::abreast();
        command.arg("serve").arg(&folder).args([
            "--origin",
            "rdf",
            "--name",
            "set",
            "--changes-per-list",
            "2",
        ]);
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(&data);
        if versions {
            command.args(["--versions", "all"]);
        }
        Source::run(&mut command)
    };
    let changes = |source: &Source, count: u64| {
        eventually("the changes are recorded", || {
            json(source, "/api/v1/sets/set/changes?after=0")
                .is_some_and(|read| read["head"] == count)
        });
    };
    for name in ["a", "b"] {
        write(name, 1);
    }
    let source = serve(false);
    changes(&source, 2);
    write("a", 2);
    changes(&source, 3);
    assert_eq!(source.stop(), Some(0));
    let source = serve(true);
    write("b", 2);
    changes(&source, 4);
    // By protocol: the lists, and which of their links lead to this server.
    let mut asked = 0;
    for list in [
        "/set/resourcelist.xml",
        "/set/changelist/1.xml",
        "/set/changelist/2.xml",
        "/set/v0.1/sitemap.xml",
        "/set/v0.1/changeset.xml",
        "/set/emm/0.1/page/1",
        "/set/emm/1.0/page/1",
    ] {
        let Some(body) = source.get(list) else { panic!("{list} is not there") };
        let text = String::from_utf8(body).unwrap();
        // The common prefix of resources is not a document.
        let links = text.split('"').filter(|part| part.starts_with(&source.url()));
        for url in links.filter(|url| !url.ends_with("/set/r/")) {
            let (status, _) = get(&source.address, &path_in(url)).unwrap();
            assert!([200, 302, 303].contains(&status), "{list} links to {url}: {status}");
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked}");
}
