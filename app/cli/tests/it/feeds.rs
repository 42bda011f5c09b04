//! Copies over SDShare and over change feeds on the real binary: of entities and of files, through
//! restarts and kills.

use crate::rdf::{Place, TURTLE, descriptions};
use crate::world::{Source, abreast};
use abreast_rdf::Syntax;
use abreast_testkit::folder::{files, paths};
use abreast_testkit::{Random, Running, eventually, eventually_ok, kills, run, seed};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kills of one test, half of them of the Source.
const KILLS: u64 = 30;

/// Addresses below that of the Source.
const SDSHARE: &str = "sdshare";
const EMM: &str = "set/emm/1.0";
const PATCHES: &str = "set/emm/0.1/patches";

/// Starts a Source that has the feed.
fn serve(place: &Place, port: u16, feed: &str) -> Source {
    let is_of_versions = feed == PATCHES;
    place.serve_with(port, if is_of_versions { &["--versions", "1000"] } else { &[] })
}

fn sync(source: &Source, feed: &str, target: &str) -> Command {
    let mut command = abreast();
    let feed = format!("{}{feed}", source.url());
    command.args(["sync", &feed, target, "--quiet", "--max-delete", "100%"]);
    command
}

/// What any program reads in files of N-Quads.
pub(crate) fn copied(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let is_data = |path: &&Path| path.extension().is_some_and(|end| end == "nq");
    let text: String = paths(folder)
        .iter()
        .map(|path| folder.join(path))
        .filter(|path| is_data(&path.as_path()))
        // A file may vanish that was written anew.
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    descriptions(Syntax::NQuads, &text)
}

#[test]
fn a_set_of_entities_is_followed_over_sdshare() {
    follow_entities(SDSHARE);
}

#[test]
fn contexts_are_those_that_are_given() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("files")).unwrap();
    fs::write(
        path("files/x.jsonld"),
        "{\"@context\": \"https://id.example/c\", \"@id\": \"http://id.example/x\", \"name\": \"n\"}",
    )
    .unwrap();
    let context = path("context.json");
    fs::write(&context, "{\"@context\": {\"name\": \"http://id.example/name\"}}").unwrap();
    let source = Source::start(&path("files"), 0, &[]);
    eventually("it is published", || source.get("/set/r/x.jsonld").is_some());
    let sync = |more: &[&str]| {
        let target = format!("nquads:{}", path("copy").display());
        let mut command = abreast();
        command.args(["sync", &source.url(), &target]).args(more);
        run(&mut command)
    };
    let output = sync(&[]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("jsonld.context") && errors.contains("https://id.example/c"),
        "{errors}"
    );
    for (text, message) in [
        ("https://id.example/c", "FILE"),
        ("https://id.example/c=none.json", "cannot read"),
        ("c=context.json", "URL"),
    ] {
        let output = sync(&["--context", text]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(message), "{text}: {errors}");
    }
    let output = sync(&["--context", &format!("https://id.example/c={}", context.display())]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        copied(&path("copy"))
            .values()
            .any(|text| String::from_utf8_lossy(text).contains("<http://id.example/name> \"n\"")),
        "{:?}",
        copied(&path("copy"))
    );
}

#[test]
fn a_set_of_entities_is_followed_over_change_feeds() {
    let others = ["set/emm/0.1", "set/iiif", "set/emm/1.0/latest", "set/emm/0.1/newest"];
    for feed in [EMM, PATCHES].into_iter().chain(others) {
        follow_entities(feed);
    }
}

fn follow_entities(feed: &str) {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = serve(&place, 0, feed);
    let copy = place.path("copy");
    let target = format!("nquads:{}", copy.display());
    let assert_copy_of = |source: &Source, expected: &str| {
        let expected = descriptions(Syntax::Turtle, expected);
        eventually("the copy has every description", || {
            run(&mut sync(source, feed, &target)).status.success() && copied(&copy) == expected
        });
    };
    assert_copy_of(&source, TURTLE);
    let changed = TURTLE.replace("London", "Paris").replace(":b a", ":c a");
    place.write("one.ttl", &changed);
    assert_copy_of(&source, &changed);
    let port = source.port();
    assert_eq!(source.stop(), Some(0));
    place.write("one.ttl", TURTLE);
    let source = serve(&place, port, feed);
    assert_copy_of(&source, TURTLE);
    let feed = format!("{}{feed}", source.url());
    let audit = || run(abreast().args(["audit", &feed, &target, "--full"])).status.code();
    assert_eq!(audit(), Some(0));
    // Somebody writes into the copy.
    let file =
        paths(&copy).into_iter().find(|path| path.extension().is_some_and(|end| end == "nq"));
    let file = copy.join(file.unwrap());
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("London", "Berlin")).unwrap();
    assert_eq!(audit(), Some(1));
}

#[test]
fn the_first_client_of_a_feed_finds_a_full_download() {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = serve(&place, 0, EMM);
    // Asked at `/readyz` only, which makes no snapshot.
    let snapshots = fs::canonicalize(place.path("rdf")).unwrap().join(".abreast/snapshots/set");
    eventually("the snapshot is complete", || {
        paths(&snapshots).iter().any(|path| path.extension().is_some_and(|end| end == "json"))
    });
    let entry = source.get(&format!("/{EMM}")).unwrap();
    let entry: serde_json::Value = serde_json::from_slice(&entry).unwrap();
    let is_triples = |link: &serde_json::Value| link["mediaType"] == "application/n-triples";
    assert!(entry["url"].as_array().unwrap().iter().any(is_triples), "{entry}");
}

#[test]
fn change_feeds_are_found_from_the_site() {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = serve(&place, 0, PATCHES);
    let feeds = ["emm/0.1", "emm/1.0", "iiif"].map(|feed| format!("{}set/{feed}", source.url()));
    for page in ["/", "/set/about.html"] {
        let page = String::from_utf8(source.get(page).unwrap()).unwrap();
        for feed in &feeds {
            assert!(page.contains(&format!("<a href=\"{feed}\">")), "{page}");
        }
    }
    let explored = run(abreast().args(["explore", &source.url()]));
    assert_eq!(explored.status.code(), Some(0));
    let explored = String::from_utf8(explored.stdout).unwrap();
    for feed in &feeds {
        assert!(explored.lines().any(|line| line == format!("change feed {feed}")), "{explored}");
    }
    let address = source.url();
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    for wrong in ["emm", "emm/1.1", "emm/1.0/", "iiif/2"] {
        let (status, body) = crate::world::get(address, &format!("/set/{wrong}")).unwrap();
        let body = String::from_utf8(body).unwrap();
        let help = format!("{}set/about.html has the addresses of the set", source.url());
        assert!(status == 404 && body.contains(&help), "{body}");
    }
}

#[test]
fn a_feed_of_a_type_is_followed() {
    let person = |name: &str, label: &str| {
        format!(
            "<http://e.org/{name}> a <http://e.org/Person> ; <http://e.org/label> \"{label}\" .\n"
        )
    };
    let place = |name: &str| format!("<http://e.org/{name}> a <http://e.org/Place> .\n");
    let at = Place::new();
    at.write(
        "one.ttl",
        &[person("a", "a"), person("b", "b"), place("c"), person("d", "d")].concat(),
    );
    let feed = "set/emm/1.0/type/Person";
    let source = serve(&at, 0, feed);
    let copy = at.path("copy");
    let target = format!("nquads:{}", copy.display());
    let assert_copy_of = |expected: &[String]| {
        let expected = descriptions(Syntax::Turtle, &expected.concat());
        eventually("the copy has the entities of the type", || {
            run(&mut sync(&source, feed, &target)).status.success() && copied(&copy) == expected
        });
    };
    assert_copy_of(&[person("a", "a"), person("b", "b"), person("d", "d")]);
    // One entity leaves the type, one joins the type, and one is deleted.
    at.write("one.ttl", &[place("a"), person("b", "B"), person("c", "c")].concat());
    assert_copy_of(&[person("b", "B"), person("c", "c")]);
    at.write("one.ttl", &[person("a", "again"), person("b", "B"), place("c")].concat());
    assert_copy_of(&[person("a", "again"), person("b", "B")]);
}

#[test]
fn a_set_of_files_is_followed_over_sdshare() {
    follow_files(SDSHARE);
}

#[test]
fn a_set_of_files_is_followed_over_change_feeds() {
    for feed in [EMM, "set/emm/0.1", "set/iiif", "set/emm/1.0/newest"] {
        follow_files(feed);
    }
}

fn follow_files(feed: &str) {
    let place = Place::new();
    let original = place.path("files");
    fs::create_dir_all(original.join("sub")).unwrap();
    fs::write(original.join("a.txt"), "text").unwrap();
    fs::write(original.join("empty"), "").unwrap();
    fs::write(original.join("empty.nt"), "").unwrap();
    fs::write(original.join("sub/other.ttl"), "<http://a> <http://b> <http://c> .").unwrap();
    fs::write(original.join("sub/page.html"), "<p>").unwrap();
    let source = Source::start(&original, 0, &[]);
    let copy = place.path("copy");
    let same =
        || {
            run(&mut sync(&source, feed, copy.to_str().unwrap())).status.success()
                && files(&copy).into_iter().filter(|(path, _)| !path.starts_with(".abreast")).eq(
                    files(&original).into_iter().filter(|(path, _)| !path.starts_with(".abreast")),
                )
        };
    eventually("the copy has every file", same);
    fs::remove_file(original.join("a.txt")).unwrap();
    fs::remove_file(original.join("empty.nt")).unwrap();
    fs::write(original.join("sub/other.ttl"), "").unwrap();
    fs::write(original.join("new"), "new").unwrap();
    eventually("the copy has every change", same);
}

/// Their full download is the Resource List, whether the feed has all of its history or not.
#[test]
fn feeds_of_files_are_copied_whole_and_not_called_partial() {
    for more in ["", "initial_changes = true", "dumps = { every = \"1s\" }"] {
        let place = Place::new();
        let (folder, config) = (place.path("files"), place.path("abreast.toml"));
        fs::create_dir(&folder).unwrap();
        for number in 0..3 {
            fs::write(folder.join(number.to_string()), "text").unwrap();
        }
        let text = format!("[[set]]\nname = \"set\"\nfolder = {folder:?}\n{more}\n");
        fs::write(&config, text).unwrap();
        let source = Source::start_config(config.to_str().unwrap());
        if more.starts_with("dumps") {
            eventually("a dump is linked to", || {
                let entry = source.get(&format!("/{EMM}")).unwrap_or_default();
                String::from_utf8_lossy(&entry).contains("application/zip")
            });
        }
        for (number, feed) in
            [EMM, "set/emm/0.1", "set/iiif", "set/emm/1.0/latest"].into_iter().enumerate()
        {
            let (copy, url) = (place.path(&number.to_string()), format!("{}{feed}", source.url()));
            for command in [&["sync"][..], &["sync", "--baseline"], &["audit", "--full"]] {
                let output = run(abreast().args(command).arg(&url).arg(&copy).arg("--json"));
                let printed = String::from_utf8_lossy(&output.stdout).into_owned();
                assert_eq!(output.status.code(), Some(0), "{more} {feed} {command:?}: {printed}");
                assert!(!printed.contains("emm.partial"), "{more} {feed} {command:?}: {printed}");
            }
            let copied = files(&copy).into_keys().filter(|path| !path.starts_with(".abreast"));
            assert_eq!(copied.count(), 3, "{more} {feed}");
        }
    }
}

#[test]
fn copies_over_sdshare_are_completed_after_kills() {
    complete_after_kills(SDSHARE);
}

#[test]
fn copies_over_change_feeds_are_completed_after_kills() {
    complete_after_kills(EMM);
}

#[test]
fn copies_made_with_patches_are_completed_after_kills() {
    complete_after_kills(PATCHES);
}

fn complete_after_kills(feed: &str) {
    let (kills, seed) = (kills(KILLS), seed(1));
    let mut random = Random::new(seed);
    let place = Place::new();
    let write = |random: &mut Random, number: u64| {
        let mut text = String::new();
        for entity in 0..=random.below(8) {
            let (name, value) = (number * 100 + entity, random.below(1_000_000));
            writeln!(
                text,
                "<http://id.example/{name}> <http://ns.example/value> \"{value}\" ; \
                 <http://ns.example/part> [ <http://ns.example/of> {value} ; \
                 <http://ns.example/next> [ <http://ns.example/of> \"{name}\" ] ] ."
            )
            .unwrap();
        }
        place.write(&format!("f{number}.ttl"), &text);
        text
    };
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    for number in 0..20 {
        texts.insert(number, write(&mut random, number));
    }
    let mut source = serve(&place, 0, feed);
    let port = source.port();
    let copy = place.path("copy");
    let target = format!("nquads:{}", copy.display());
    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        round += 1;
        assert!(round < 100 * kills, "only {killed} were killed in time");
        for _ in 0..3 {
            let number = random.below(25);
            if random.below(5) == 0 {
                let _ = fs::remove_file(place.path("rdf").join(format!("f{number}.ttl")));
                texts.remove(&number);
            } else {
                texts.insert(number, write(&mut random, number));
            }
        }
        let mut command = sync(&source, feed, &target);
        // Now and then everything is compared.
        command.args((random.below(4) == 0).then_some("--baseline"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_millis(random.below(250));
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if random.below(2) == 0 {
            source.kill();
            source = serve(&place, port, feed);
            killed += 1;
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
    }
    eprintln!("{killed} kills in {round} rounds");
    let all: String = texts.into_values().collect();
    let expected = descriptions(Syntax::Turtle, &all);
    eventually_ok("the copy catches up", || {
        let output = run(&mut sync(&source, feed, &target));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let copied = copied(&copy);
        match expected.iter().find(|(name, lines)| copied.get(*name) != Some(lines)) {
            Some((name, _)) => Err(format!("{name} differs")),
            None if expected.len() != copied.len() => Err("there are more".to_owned()),
            None => Ok(()),
        }
    });
}

#[test]
fn changes_come_as_events_over_change_feeds() {
    for feed in [EMM, PATCHES] {
        follow_events(feed);
    }
}

fn follow_events(feed: &str) {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = serve(&place, 0, feed);
    let copy = place.path("copy");
    let target = format!("nquads:{}", copy.display());
    let mut command = sync(&source, feed, &target);
    // Polls are too rare to count.
    command.args(["--follow", "--interval", "1h"]);
    let _following = Running(command.stdout(Stdio::null()).spawn().unwrap());
    let follows = |text: &str| {
        let expected = descriptions(Syntax::Turtle, text);
        eventually("the copy follows", || copy.exists() && copied(&copy) == expected);
    };
    follows(TURTLE);
    for city in ["Paris", "Berlin", "Rome"] {
        let changed = TURTLE.replace("London", city);
        place.write("one.ttl", &changed);
        follows(&changed);
    }
}

#[test]
fn only_the_entities_of_a_list_are_copied() {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = place.serve(0);
    let copy = place.path("copy");
    let target = format!("nquads:{}", copy.display());
    let all = descriptions(Syntax::Turtle, TURTLE);
    let (first, _) = all.first_key_value().unwrap();
    let (last, _) = all.last_key_value().unwrap();
    let list = place.path("list");
    for feed in [EMM, SDSHARE] {
        let _ = fs::remove_dir_all(&copy);
        for iris in [&[first][..], &[first, last]] {
            let lines: Vec<&str> = iris.iter().map(|iri| iri.as_str()).collect();
            fs::write(&list, format!("# used\n{}", lines.join("\n"))).unwrap();
            let mut expected = all.clone();
            expected.retain(|iri, _| iris.contains(&iri));
            let mut command = sync(&source, feed, &target);
            command.arg("--uris-from").arg(&list);
            let output = run(&mut command);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(copied(&copy), expected, "{feed}");
        }
    }
    // The same by a job.
    let config = place.path("jobs.toml");
    let text = format!(
        "[[mirror]]\nname = \"job\"\nurl = \"{}{EMM}\"\nfolder = \"nquads:{}\"\nuris_from = \"{}\"\n",
        source.url(),
        place.path("job").display(),
        list.display()
    );
    fs::write(&config, text).unwrap();
    let job = || run(abreast().args(["sync", "--quiet", "--all", "--config"]).arg(&config));
    assert!(job().status.success());
    assert_eq!(copied(&place.path("job")).len(), 2);
    fs::write(&list, "http://h/a\n<http://h/b>\n").unwrap();
    let output = job();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("line 2") && errors.contains("help:"), "{errors}");
}

#[test]
fn labels_of_a_set_are_kept_in_a_table() {
    let place = Place::new();
    let text = TURTLE.replace("'Ada'@en", "'Ada, \"the first\"'@en, 'Ada'@de");
    place.write("one.ttl", TURTLE);
    let source = place.serve(0);
    // Behind the full download: the feed states when it changed.
    place.write("one.ttl", &text);
    eventually("the change is published", || {
        let page = source.get(&format!("/{EMM}/page/1")).unwrap();
        String::from_utf8(page).unwrap().contains("Update")
    });
    let (file, state, list) = (place.path("labels.csv"), place.path("state"), place.path("list"));
    fs::write(&list, "http://id.example/a\n").unwrap();
    let command = |target: &str, more: &[&str]| {
        let mut command = sync(&source, EMM, target);
        command.args(more).arg("--state").arg(&state).arg("--uris-from").arg(&list);
        run(&mut command)
    };
    let target = format!("labels:{}", file.display());
    let output = command(&target, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = || {
        let csv = fs::read_to_string(&file).unwrap();
        let time = csv.rsplit_once(',').unwrap().1.trim().to_owned();
        csv.replace(&time, "TIME")
    };
    let head = "uri,label,lang,deprecated,replaced_by,changed\r\n";
    let german = "http://id.example/a,Ada,de,0,,TIME\r\n";
    let english = "http://id.example/a,\"Ada, \"\"the first\"\"\",en,0,,TIME\r\n";
    assert_eq!(read(), format!("{head}{german}{english}"));
    // One language is preferred.
    assert!(command(&target, &["--label-language", "en,de"]).status.success());
    assert_eq!(read(), format!("{head}{english}"));
    // A database; no state of another kind of table.
    let database = format!("labels:{}", place.path("labels.db").display());
    assert!(command(&database, &[]).status.success());
    assert!(fs::read(place.path("labels.db")).unwrap().starts_with(b"SQLite format 3"));
    let (code, out) = {
        let output = command("labels:./labels.txt", &[]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(code == Some(2) && out.contains(".csv"), "{out}");
}

#[test]
fn a_busy_source_is_followed_without_requests_of_entities() {
    const FILES: u64 = 10;
    const ENTITIES: u64 = 20;
    const VERSIONS: u64 = 50;
    let text = |file: u64, version: u64| -> String {
        let entity = |number: u64| {
            format!(
                "<http://id.example/{file}-{number}> <http://ns.example/value> \"{version} of {number}\" ; \
                 <http://ns.example/part> [ <http://ns.example/of> {version} ] .\n"
            )
        };
        (0..ENTITIES).map(entity).collect()
    };
    let place = Place::new();
    let write = |version: u64| {
        place.write(&format!("{}.ttl", version % FILES), &text(version % FILES, version));
    };
    (0..FILES).for_each(write);
    let source = serve(&place, 0, PATCHES);
    let feed = format!("{}{PATCHES}", source.url());
    let copy = place.path("copy");
    let target = format!("nquads:{}", copy.display());
    // Requests, and resources that were made with patches.
    let ran = || -> (u64, u64) {
        let output = run(abreast().args(["sync", &feed, &target, "--json"]));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        let summary: serde_json::Value =
            serde_json::from_str(text.lines().last().unwrap()).unwrap();
        (summary["requests"].as_u64().unwrap(), summary["patched"].as_u64().unwrap())
    };
    let (mut runs, mut patched) = (0, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for version in FILES..VERSIONS {
                write(version);
                // A folder is read when it was left alone for a while.
                let pause = if version % FILES == 0 { 1_500 } else { 20 };
                std::thread::sleep(Duration::from_millis(pause));
            }
        });
        while !writer.is_finished() {
            let (requests, new) = ran();
            assert!(requests < 20, "{requests}");
            (runs, patched) = (runs + 1, patched + new);
        }
    });
    let last: String =
        (VERSIONS - FILES..VERSIONS).map(|version| text(version % FILES, version)).collect();
    let expected = descriptions(Syntax::Turtle, &last);
    eventually("the copy has the last version", || {
        let (requests, new) = ran();
        assert!(requests < 20, "{requests}");
        patched += new;
        copied(&copy) == expected
    });
    eprintln!("{patched} resources were patched in {runs} runs");
    assert!(patched >= FILES * ENTITIES, "{patched}");
}
