//! Where a store begins, which sets it has, and what happens while a folder is missing.

use crate::world::{Source, abreast, sync};
use abreast_testkit::folder::files;
use abreast_testkit::{eventually, run};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

struct World {
    temporary: tempfile::TempDir,
}

impl World {
    /// Folders of these names with a file each, and a configuration that publishes them.
    fn new(sets: &[&str]) -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap() };
        for set in sets {
            fs::create_dir(world.at(set)).unwrap();
            fs::write(world.at(set).join("a.txt"), *set).unwrap();
        }
        world.configure("data", sets);
        world
    }

    fn configure(&self, data: &str, sets: &[&str]) {
        let mut text = format!("data = \"{}\"\n", self.word(data));
        for set in sets {
            let folder = self.word(set);
            let _ = write!(
                text,
                "[[set]]\nname = \"{set}\"\nfolder = \"{folder}\"\ndebounce = \"30ms\"\nversions = 3\n"
            );
        }
        fs::write(self.at("abreast.toml"), text).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn serve(&self) -> Source {
        Source::start_config(&self.word("abreast.toml"))
    }

    /// Runs a command, in whose words `@` stands for the folder of this test.
    fn code(&self, words: &[&str]) -> (Option<i32>, String) {
        let own = format!("{}/", self.temporary.path().display());
        let output = run(abreast().args(words.iter().map(|word| word.replace('@', &own))));
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    #[track_caller]
    fn assert_code(&self, words: &[&str], expected: i32) -> String {
        let (code, text) = self.code(words);
        assert_eq!(code, Some(expected), "{words:?}\n{text}");
        text
    }

    /// Starts `serve` with these arguments and stops the server when it is ready; returns the exit code
    /// if the start failed, and the output.
    fn begin(&self, words: &[&str]) -> (Option<i32>, String) {
        let own = format!("{}/", self.temporary.path().display());
        let words = words.iter().map(|word| word.replace('@', &own));
        let mut command = abreast();
        command.arg("serve").args(words).args(["--listen", "127.0.0.1:0"]);
        let log = self.at("output");
        let output = fs::File::create(&log).unwrap();
        command.stdout(output.try_clone().unwrap()).stderr(output);
        let mut child = abreast_testkit::Running(command.spawn().unwrap());
        let text = || fs::read_to_string(&log).unwrap();
        let mut code = None;
        eventually("it serves or has ended", || {
            code = child.0.try_wait().unwrap().and_then(|status| status.code());
            code.is_some() || text().contains("to mirror it")
        });
        if code.is_none() {
            assert_eq!(crate::world::stop(child), Some(0));
        }
        (code, text())
    }
}

#[test]
fn a_set_that_is_not_configured_is_reported_and_dropped() {
    let world = World::new(&["kept", "old"]);
    let source = world.serve();
    let before = sync(&source.url(), &world.at("copy"), 0, &["--set", "kept"]);
    assert_eq!(before["created"], 1);
    assert_eq!(source.stop(), Some(0));
    assert!(!world.assert_code(&["check", "@data"], 0).contains("store.set"));
    world.configure("data", &["kept"]);
    let (_, text) = world.begin(&["--config", "@abreast.toml"]);
    assert!(
        text.contains("has the set `old` (1 resource)") && text.contains("abreast set remove old "),
        "{text}"
    );
    let text = world.assert_code(&["check", "@data"], 0);
    assert!(text.contains("note [store.set] old"), "{text}");

    let text = world.assert_code(&["drop", "@data", "other", "--yes"], 2);
    assert!(text.contains("name one of its sets: kept, old"), "{text}");
    world.assert_code(&["drop", "@kept", "old", "--yes"], 2);
    let topics = || world.assert_code(&["hub", "topics", "--data", "@data"], 0);
    assert!(topics().contains("/old/notify/change"), "{}", topics());
    for (words, code) in [(&["--dry-run"][..], 0), (&[], 2)] {
        let text = world.assert_code(&[&["drop", "@data", "old"], words].concat(), code);
        assert!(text.contains("set old: 1 resource, 0 changes"), "{text}");
        assert!(text.contains(" topics, 0 subscriptions"), "{text}");
        assert!(world.assert_code(&["check", "@data"], 0).contains("store.set"));
    }
    let source = world.serve();
    for words in [&["--yes"][..], &["--dry-run"], &[]] {
        let text = world.assert_code(&[&["drop", "@data", "old"], words].concat(), 10);
        let is_help = text.contains("help: stop it, then ") && text.contains("in use by another");
        assert!(is_help && !text.contains("--server") && !text.contains("repair"), "{text}");
    }
    assert_eq!(source.stop(), Some(0));
    world.assert_code(&["drop", "@data", "old", "--yes"], 0);
    let text = world.assert_code(&["check", "@data", "--read-data"], 0);
    assert!(!text.contains("set old") && !text.contains("contents.orphan"), "{text}");
    let text = topics();
    // That the set ended was published at an address of its own: another port.
    assert!(!text.contains("/old/notify/change") && text.contains("/kept/notify/change"), "{text}");
    let notified = fs::read_to_string(world.at("data/notified.json")).unwrap();
    assert!(!notified.contains("\"old"), "{notified}");
    // The other one has its history.
    let source = world.serve();
    fs::write(world.at("kept/b.txt"), "b").unwrap();
    eventually("the change is listed", || {
        let list = source.get("/kept/changelist.xml").unwrap_or_default();
        String::from_utf8_lossy(&list).contains("b.txt")
    });
}

#[test]
fn a_new_store_is_announced_and_an_old_one_is_not() {
    let world = World::new(&["papers"]);
    let new = "(new: the history of its sets begins now)";
    for words in [&["@papers"][..], &["@papers", "--data", "@other/store", "--new-store"]] {
        let (code, text) = world.begin(words);
        assert!(code.is_none() && text.contains(new), "{text}");
        let (code, text) = world.begin(words);
        assert!(code.is_none() && !text.contains(new), "{text}");
    }
    fs::create_dir(world.at("records")).unwrap();
    fs::write(world.at("lines"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    let text = world.assert_code(&["import", "known", "--data", "@records", "@lines"], 0);
    assert!(text.contains("is new: the history of its sets begins now"), "{text}");
    let text = world.assert_code(&["import", "known", "--data", "@records", "@lines"], 0);
    assert!(!text.contains("is new"), "{text}");
}

#[test]
fn a_mistyped_store_begins_no_history() {
    let world = World::new(&["papers", "own", "fresh"]);
    world.configure("data", &["papers", "own"]);
    assert_eq!(world.begin(&["--config", "@abreast.toml"]).0, None);
    assert_eq!(world.begin(&["@own"]).0, None);
    fs::create_dir_all(world.at("home/mail")).unwrap();
    fs::create_dir_all(world.at("lost/contents")).unwrap();
    for (words, part) in [
        (&["--config", "@abreast.toml", "--data", "@dta"][..], "has the history of these sets"),
        (&["@papers", "--data", "@dta"], "has the history of the set `papers`"),
        (&["@own", "--data", "@elsewhere/dta"], "own/.abreast` has the history"),
        (&["@fresh", "--data", "@home"], "holds no store, and is not empty: there is `mail`"),
        (&["@fresh", "--data", "@lost"], "has lost its database"),
    ] {
        let (code, text) = world.begin(words);
        assert_eq!(code, Some(2), "{words:?}\n{text}");
        assert!(text.contains(part) && text.contains("help: "), "{words:?}\n{text}");
        assert!(!world.at("dta").exists() && !world.at("elsewhere").exists());
        assert!(!world.at("home/source.db").exists());
    }
    // What does not look like a mistake.
    fs::create_dir_all(world.at("disk/lost+found")).unwrap();
    fs::write(world.at("disk/.keep"), "").unwrap();
    fs::write(world.at("disk/abreast.toml"), "").unwrap();
    fs::create_dir(world.at("disk/files")).unwrap();
    assert_eq!(world.begin(&["@disk/files", "--data", "@disk"]).0, None);
    assert_eq!(world.begin(&["@papers", "--data", "@dta", "--new-store"]).0, None);
}

#[test]
fn a_missing_folder_stops_no_other_set() {
    let world = World::new(&["here", "known", "new"]);
    world.configure("data", &["here", "known"]);
    let source = world.serve();
    sync(&source.url(), &world.at("copy"), 0, &["--set", "known"]);
    let port = source.port();
    assert_eq!(source.stop(), Some(0));

    world.configure("data", &["here", "known", "new"]);
    for set in ["known", "new"] {
        fs::rename(world.at(set), world.at(&format!("{set}-away"))).unwrap();
    }
    let config = world.word("abreast.toml");
    let checked = run(abreast().args(["config", "check", &config]));
    let warned = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(0), "as `serve` decides: {warned}");
    assert_eq!(warned.matches("warning: ").count(), 2, "{warned}");
    assert_eq!(warned.matches("`folder`: cannot open").count(), 2, "{warned}");
    let mut command = abreast();
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--config", &config]);
    let source = Source::listening(&mut command);
    eventually("the other set is served", || source.get("/here/r/a.txt").is_some());
    fs::write(world.at("here/b.txt"), "b").unwrap();
    eventually("its changes are listed", || {
        let list = source.get("/here/changelist.xml").unwrap_or_default();
        String::from_utf8_lossy(&list).contains("b.txt")
    });
    for set in ["known", "new"] {
        for path in [
            "capabilitylist.xml",
            "resourcelist.xml",
            "changelist.xml",
            "r/a.txt",
            "emm/1.0",
            "about.html",
        ] {
            let answer = source.head(&format!("/{set}/{path}")).unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 "), "{set}/{path}: {answer}");
            assert!(answer.to_lowercase().contains("retry-after: "), "{answer}");
        }
    }
    let ready = source.answer("/readyz").unwrap();
    let text = String::from_utf8_lossy(&ready.1).into_owned();
    assert!(ready.0 == 200 && text.contains("known") && text.contains("cannot open"), "{text}");
    // A copy keeps what it has.
    let mut command = abreast();
    command.args(["sync", &source.url()]).arg(world.at("copy"));
    let output = run(command.args(["--set", "known", "--retries", "0"]));
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(world.at("copy/a.txt")).unwrap(), b"known");

    for set in ["known", "new"] {
        fs::rename(world.at(&format!("{set}-away")), world.at(set)).unwrap();
    }
    eventually("all is served", || {
        source.answer("/readyz").is_some_and(|(_, text)| text == b"ready\n")
    });
    for set in ["known", "new"] {
        assert_eq!(source.get(&format!("/{set}/r/a.txt")).unwrap(), set.as_bytes());
    }
    let summary = sync(&source.url(), &world.at("copy"), 0, &["--set", "known"]);
    assert_eq!((&summary["deleted"], &summary["updated"]), (&Value::from(0), &Value::from(0)));
    assert_eq!(files(&world.at("copy")).keys().filter(|path| path.ends_with("a.txt")).count(), 1);
}

#[test]
fn where_every_folder_is_missing_nothing_is_served() {
    let world = World::new(&["papers"]);
    fs::remove_dir_all(world.at("papers")).unwrap();
    for words in [&["--config", "@abreast.toml"][..], &["@papers"]] {
        let (code, text) = world.begin(words);
        assert!(code == Some(2) && text.contains("`folder`: cannot open"), "{text}");
    }
    let checked = run(abreast().args(["config", "check", &world.word("abreast.toml")]));
    assert_eq!(checked.status.code(), Some(2), "as `serve` decides");
}

#[test]
fn a_log_is_not_read_beyond_its_end() {
    let world = World::new(&[]);
    fs::create_dir(world.at("store")).unwrap();
    fs::write(world.at("lines"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    for _ in 0..2 {
        world.assert_code(&["import", "s", "--data", "@store", "@lines"], 0);
    }
    fs::write(world.at("lines"), "{\"uri\":\"http://h/b\"}\n").unwrap();
    world.assert_code(&["import", "s", "--data", "@store", "@lines"], 0);
    world.assert_code(&["log", "s", "--data", "@store", "--after", "1"], 0);
    let text = world.assert_code(&["log", "s", "--data", "@store", "--after", "9"], 1);
    assert!(text.contains("beyond the last change (1)") && text.contains("help: read"), "{text}");
}

#[test]
fn two_changes_of_a_batch_have_keys_of_their_own() {
    let world = World::new(&[]);
    fs::create_dir(world.at("store")).unwrap();
    let one = "{\"uri\":\"http://h/a\",\"length\":1,\"idempotency_key\":\"k\"}\n";
    let other = one.replace("\"length\":1", "\"length\":2");
    for (lines, code, part) in [
        (
            format!("{one}{other}"),
            2,
            "change 2: `idempotency_key`: `k` is that of change 1 as well",
        ),
        (format!("{one}{one}"), 0, ""),
    ] {
        fs::write(world.at("lines"), lines).unwrap();
        let text = world.assert_code(&["import", "s", "--data", "@store", "@lines"], code);
        assert!(text.contains(part), "{text}");
    }
}
