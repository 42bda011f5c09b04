//! Copies that store triples: whole after every kill.

use crate::rdf::descriptions;
use crate::world::{Source, abreast};
use abreast_rdf::Syntax;
use abreast_testkit::endpoint::Endpoint;
use abreast_testkit::{Random, eventually_ok, kills, run, seed};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kills of one test.
const KILLS: u64 = 40;

/// The statements of each resource, sorted, without labels of blank nodes and graphs.
pub(crate) type Statements = BTreeMap<String, Vec<String>>;

fn without_labels(line: &str) -> String {
    let word = |word: &str| if word.starts_with("_:") { "_:".to_owned() } else { word.to_owned() };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn published(folder: &Path) -> Statements {
    let mut all = Statements::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().extension().is_some_and(|end| end == "nt") {
            let text = fs::read_to_string(entry.path()).unwrap();
            let mut lines: Vec<String> = text.lines().map(without_labels).collect();
            lines.sort();
            all.insert(name, lines);
        }
    }
    all
}

/// What is in the files, read as any program would.
fn copied(folder: &Path) -> Statements {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "nq"));
    by_graph(&files.map(|path| fs::read_to_string(path).unwrap()).collect::<String>())
}

/// N-Quads by the name at the end of the graph.
pub(crate) fn by_graph(text: &str) -> Statements {
    let mut all = Statements::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (statement, graph) = line.strip_suffix("> .").unwrap().rsplit_once(" <").unwrap();
        let (_, name) = graph.rsplit_once('/').unwrap();
        all.entry(name.to_owned()).or_default().push(without_labels(statement) + " .");
    }
    for lines in all.values_mut() {
        lines.sort();
    }
    all
}

fn sync(url: &str, target: &str) -> Command {
    let mut command = abreast();
    command.args(["sync", url, target, "--graph", "resource"]).args([
        "--quiet",
        "--max-delete",
        "100%",
        "--segment-size",
        "20K",
    ]);
    command
}

#[test]
fn killed_runs_leave_files_of_nquads_that_are_completed() {
    killed_runs_are_completed("nquads", copied);
}

pub(crate) fn killed_runs_are_completed(kind: &str, copied: fn(&Path) -> Statements) {
    let (kills, seed) = (kills(KILLS), seed(1));
    let place = tempfile::tempdir().unwrap();
    let (original, copy) = (place.path().join("original"), place.path().join("copy"));
    let target = format!("{kind}:{}", copy.display());
    fs::create_dir_all(&original).unwrap();
    let mut random = Random::new(seed);
    let write = |random: &mut Random, number: u64| {
        let aside = original.join(".new");
        let mut text = String::new();
        for value in 0..=random.below(20) {
            let value = format!("{value} {}", random.below(1_000_000));
            writeln!(text, "<http://h/{number}> <http://h/p> \"{value}\" .").unwrap();
            writeln!(text, "<http://h/{number}> <http://h/q> _:x .").unwrap();
            writeln!(text, "_:x <http://h/p> \"{value}\" .").unwrap();
        }
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        fs::write(&aside, lines.join("\n") + "\n").unwrap();
        fs::rename(aside, original.join(format!("f{number:03}.nt"))).unwrap();
    };
    for number in 0..150 {
        write(&mut random, number);
    }
    let source = Source::start(&original, 0, &[]);
    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        round += 1;
        assert!(round < 100 * kills, "only {killed} runs were killed in time");
        for _ in 0..10 {
            let number = random.below(200);
            if random.below(4) == 0 {
                let _ = fs::remove_file(original.join(format!("f{number:03}.nt")));
            } else {
                write(&mut random, number);
            }
        }
        let mut child = sync(&source.url(), &target)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_millis(random.below(120));
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
    }
    eprintln!("{killed} kills in {round} runs");
    eventually_ok("the copy catches up", || {
        let output = run(&mut sync(&source.url(), &target));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (published, copied) = (published(&original), copied(&copy));
        match published.iter().find(|(name, lines)| copied.get(*name) != Some(lines)) {
            Some((name, _)) => Err(format!("{name} differs")),
            None if published.len() != copied.len() => Err("there are more".to_owned()),
            None => Ok(()),
        }
    });
    let audit = run(abreast().args(["audit", &source.url(), &target, "--full"]));
    assert_eq!(audit.status.code(), Some(0), "{}", String::from_utf8_lossy(&audit.stdout));
}

/// A copy of a set of entities, by ResourceSync, in each kind of sink.
struct Copies {
    place: tempfile::TempDir,
    endpoint: Endpoint,
}

impl Copies {
    fn sync(&self, url: &str) -> [Command; 2] {
        let files = format!("nquads:{}", self.place.path().join("files").display());
        let endpoint = format!("sparql:{}", self.endpoint.url());
        [files, endpoint].map(|target| {
            let mut command = abreast();
            command.args(["sync", url, &target, "--quiet", "--max-delete", "100%"]);
            if target.starts_with("sparql:") {
                command.arg("--state").arg(self.place.path().join("state"));
            }
            command
        })
    }

    fn assert_copies_of(&self, source: &Source, turtle: &str) {
        let expected = descriptions(Syntax::Turtle, turtle);
        let statements = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
        let count: usize =
            expected.values().map(|lines| lines.split(|b| *b == b'\n').count() - 1).sum();
        eventually_ok("the copies have what is published", || {
            for mut command in self.sync(&source.url()) {
                let output = run(&mut command);
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).into_owned());
                }
            }
            let folder = fs::read_dir(self.place.path().join("files")).unwrap().flatten();
            let mut paths: Vec<_> = folder.map(|entry| entry.path()).collect();
            paths.retain(|path| path.extension().is_some_and(|end| end == "nq"));
            let in_files: String =
                paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
            let mut in_endpoint = String::new();
            for quad in &self.endpoint.store {
                writeln!(in_endpoint, "{} .", quad.unwrap()).unwrap();
            }
            for (what, text) in [("files", in_files), ("endpoint", in_endpoint)] {
                // Statements about blank nodes that no entity reaches are in no description.
                let found = (statements(&text), descriptions(Syntax::NQuads, &text));
                if found != (count, expected.clone()) {
                    return Err(format!("{what}: {} statements of {count}", found.0));
                }
            }
            Ok(())
        });
    }

    fn audit(&self, source: &Source) -> [Option<i32>; 2] {
        self.sync(&source.url()).map(|command| {
            let arguments: Vec<_> = command.get_args().collect();
            let mut audit = abreast();
            audit.args(["audit", "--full"]).args(&arguments[1..3]).args(&arguments[6..]);
            run(&mut audit).status.code()
        })
    }
}

/// Statements about a few dozen entities, with blank nodes.
fn entities(random: &mut Random) -> String {
    let mut text = String::from("@prefix : <http://id.example/caf\u{e9}/> .\n");
    for entity in 0..40 {
        if random.below(4) > 0 {
            let (value, below) = (random.below(3), random.below(3));
            let list: Vec<_> =
                (0..random.below(20)).map(|item| (100 * entity + item).to_string()).collect();
            let list = list.join(" ");
            writeln!(
                text,
                ":e{entity} :p {value} ; :q [ :r {below} ; :s [ :t :e1, {entity} ] ] ; :l ({list}) ."
            )
            .unwrap();
        }
    }
    text
}

#[test]
fn entities_reach_files_and_endpoints_through_kills() {
    let (kills, seed) = (kills(20), seed(1));
    let mut random = Random::new(seed);
    let copies = Copies { place: tempfile::tempdir().unwrap(), endpoint: Endpoint::start() };
    let folder = copies.place.path().join("rdf");
    fs::create_dir(&folder).unwrap();
    let write = |text: &str| {
        fs::write(folder.join(".part"), text).unwrap();
        fs::rename(folder.join(".part"), folder.join("all.ttl")).unwrap();
    };
    let mut text = entities(&mut random);
    write(&text);
    let source = Source::start(&folder, 0, &["--origin", "rdf"]);
    copies.assert_copies_of(&source, &text);
    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        round += 1;
        assert!(round < 100 * kills, "only {killed} runs were killed in time");
        text = entities(&mut random);
        write(&text);
        std::thread::sleep(Duration::from_millis(random.below(300)));
        for mut command in copies.sync(&source.url()) {
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.below(250)));
            killed += u64::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    println!("{killed} kills in {round} rounds");
    copies.assert_copies_of(&source, &text);
    assert_eq!(copies.audit(&source), [Some(0); 2]);
    copies.endpoint.update("DELETE { ?s ?p ?o } INSERT { ?s ?p 7 } WHERE { ?s ?p ?o . ?s ?p 1 }");
    assert_eq!(copies.audit(&source), [Some(0), Some(1)]);
}

#[test]
fn pushed_entities_reach_another_set_through_kills() {
    let (kills, seed) = (kills(10), seed(1));
    let mut random = Random::new(seed);
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("rdf")).unwrap();
    let write = |text: &str| {
        fs::write(path("part"), text).unwrap();
        fs::rename(path("part"), path("rdf/all.ttl")).unwrap();
    };
    let mut text = entities(&mut random);
    write(&text);
    let source = Source::start(&path("rdf"), 0, &["--origin", "rdf"]);
    let receive = |port: u16| {
        let mut command = abreast();
        command.args(["serve", "--origin", "rdf", "--name", "set", "--api-write", "--data"]);
        command.arg(path("data")).args(["--listen", &format!("127.0.0.1:{port}")]);
        Source::run(&mut command)
    };
    let mut receiver = Some(receive(0));
    let port = receiver.as_ref().unwrap().port();
    let push = || {
        let mut command = abreast();
        let target = format!("push:http://127.0.0.1:{port}/api/v1/sets/set/push");
        command.args(["sync", &source.url(), &target, "--quiet", "--max-delete", "100%"]);
        command.args(["--retries", "0", "--state"]).arg(path("state"));
        command
    };
    let pushed = |receiver: &Source| {
        let file = format!("nquads:{}", path("files").display());
        let output = run(abreast().args(["sync", &receiver.url(), &file, "--quiet"]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = fs::read_to_string(path("files").join("abreast-00000001.nq"));
        descriptions(Syntax::NQuads, &text.unwrap_or_default())
    };
    for _ in 0..kills {
        text = entities(&mut random);
        write(&text);
        std::thread::sleep(Duration::from_millis(random.below(1_500)));
        let mut child = push().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.below(250)));
        if random.below(2) == 0 {
            child.kill().unwrap();
        } else {
            receiver.take().unwrap().kill();
            receiver = Some(receive(port));
        }
        child.wait().unwrap();
    }
    let receiver = receiver.unwrap();
    let expected = descriptions(Syntax::Turtle, &text);
    eventually_ok("the receiver has what is published", || {
        let output = run(&mut push());
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let found = pushed(&receiver);
        let differing = expected.iter().filter(|(iri, lines)| found.get(*iri) != Some(lines));
        let (count, wrong) = (found.len(), differing.count());
        if found == expected { Ok(()) } else { Err(format!("{count} entities, {wrong} differ")) }
    });
}
