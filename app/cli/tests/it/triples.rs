//! Copies that store triples: whole after every kill.

use crate::world::{Source, abreast};
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
type Statements = BTreeMap<String, Vec<String>>;

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
    let mut all = Statements::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_none_or(|end| end != "nq") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (statement, graph) = line.strip_suffix("> .").unwrap().rsplit_once(" <").unwrap();
            let (_, name) = graph.rsplit_once('/').unwrap();
            all.entry(name.to_owned()).or_default().push(without_labels(statement) + " .");
        }
    }
    for lines in all.values_mut() {
        lines.sort();
    }
    all
}

fn sync(url: &str, copy: &Path) -> Command {
    let mut command = abreast();
    command
        .args(["sync", url, &format!("nquads:{}", copy.display()), "--graph", "resource"])
        .args(["--quiet", "--max-delete", "100%", "--segment-size", "20K"]);
    command
}

#[test]
fn killed_runs_leave_files_of_nquads_that_are_completed() {
    let (kills, seed) = (kills(KILLS), seed(1));
    let place = tempfile::tempdir().unwrap();
    let (original, copy) = (place.path().join("original"), place.path().join("copy"));
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
        let mut child =
            sync(&source.url(), &copy).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
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
    println!("{killed} kills in {round} runs");
    eventually_ok("the copy catches up", || {
        let output = run(&mut sync(&source.url(), &copy));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (published, copied) = (published(&original), copied(&copy));
        match published.iter().find(|(name, lines)| copied.get(*name) != Some(lines)) {
            Some((name, _)) => Err(format!("{name} differs")),
            None if published.len() != copied.len() => Err("there are more".to_owned()),
            None => Ok(()),
        }
    });
    let target = format!("nquads:{}", copy.display());
    let audit = run(abreast().args(["audit", &source.url(), &target, "--full"]));
    assert_eq!(audit.status.code(), Some(0), "{}", String::from_utf8_lossy(&audit.stdout));
}
