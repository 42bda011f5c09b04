//! Sets of a database are removed while no node runs, also if the removal is killed.

use crate::world::{Source, abreast};
use abreast_testkit::http::unused_address;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{eventually, provided, run};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
/// Exit codes: a wrong use, and a store in use.
const USAGE: i32 = 2;
const IN_USE: i32 = 10;
/// Changes of a set whose removal is killed; they are deleted in many parts.
const MANY: u32 = 200_000;

/// A database with sets of records, and a node.
struct World<'s> {
    place: tempfile::TempDir,
    server: &'s Postgres,
    name: &'static str,
    database: String,
}

impl<'s> World<'s> {
    fn new(server: &'s Postgres, name: &'static str) -> Self {
        let place = tempfile::tempdir().unwrap();
        Self { place, server, name, database: server.create(name) }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn configure(&self, sets: &[&str]) -> PathBuf {
        let mut text = format!(
            "data = \"{}\"\nscratch = \"{}\"\nnode = \"one\"\nbase_url = \"http://h.example/\"\n\
             database = {{ lease = \"2s\" }}\n",
            self.database,
            self.at("scratch").display()
        );
        for set in sets {
            writeln!(text, "[[set]]\nname = \"{set}\"\norigin = \"records\"").unwrap();
        }
        fs::write(self.at("abreast.toml"), text).unwrap();
        self.at("abreast.toml")
    }

    fn serve(&self, sets: &[&str]) -> Source {
        let mut command = abreast();
        command.arg("serve").arg("--config").arg(self.configure(sets));
        command.args(["--listen", &unused_address().to_string()]);
        Source::run_logged(&mut command, &self.at("log"))
    }

    /// Records a resource in each set.
    fn record(&self, sets: &[&str]) {
        fs::write(self.at("lines"), "{\"uri\":\"http://elsewhere.example/a\"}\n").unwrap();
        for set in sets {
            let import = ["import", set, "--data", &self.database];
            let output = run(abreast().args(import).arg(self.at("lines")));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    fn removal(&self, words: &[&str]) -> Command {
        let mut command = abreast();
        command.args(["set", "remove"]).args(words).args(["--data", &self.database]);
        command
    }

    /// Runs `abreast set remove`; returns its output.
    #[track_caller]
    fn remove(&self, words: &[&str], code: i32) -> String {
        let output = run(&mut self.removal(words));
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}\n{text}");
        text
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql(self.name, sql)
    }

    fn count(&self, table: &str) -> u32 {
        self.sql(&format!("SELECT count(*) FROM abreast.{table}")).trim().parse().unwrap()
    }

    /// Starts the removal of a set with many rows, and kills it in the middle.
    fn kill_removal(&self, set: &str) {
        self.sql(&format!(
            "INSERT INTO abreast.changes (set_id, position, time, kind, key) SELECT sets.id, number, 1, 1, number::text \
             FROM abreast.sets, generate_series(2, {MANY}) AS number WHERE slug = '{set}'"
        ));
        let mut command = self.removal(&[set, "--yes"]);
        let mut removal = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("rows are deleted", || {
            self.count("records WHERE name LIKE 'removing/%'") == 1
                && self.count("changes") < MANY - 1_000
        });
        removal.kill().unwrap();
        removal.wait().unwrap();
        assert_eq!(self.count(&format!("sets WHERE slug = '{set}'")), 0);
        assert!(self.count("changes") > 10_000, "the removal was too fast for the test");
        // Rows of a removed set are not damage.
        let check = run(abreast().args(["check", &self.database]));
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    }

    /// Nothing of a removed set is left, and the others are as before.
    fn assert_removed(&self, left: u32) {
        for table in ["records WHERE name LIKE 'removing/%'", "changes WHERE position > 1"] {
            assert_eq!(self.count(table), 0, "{table}");
        }
        for table in ["sets", "resources", "changes", "pages", "shards"] {
            assert_eq!(self.count(table), left, "{table}");
        }
        let check = run(abreast().args(["check", &self.database]));
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    }
}

fn listed(world: &World<'_>, config: Option<&Path>) -> String {
    let mut command = abreast();
    command.args(["set", "list"]);
    match config {
        Some(config) => command.arg("--config").arg(config),
        None => command.args(["--data", &world.database]),
    };
    String::from_utf8(run(&mut command).stdout).unwrap()
}

#[test]
fn a_set_of_a_database_is_removed_when_its_nodes_are_stopped() {
    let name = "database_sets::a_set_of_a_database_is_removed_when_its_nodes_are_stopped";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let world = World::new(&server, "nodes");
    let node = world.serve(&["kept", "old"]);
    world.record(&["kept", "old"]);
    for words in [&["old", "--yes"][..], &["old", "--dry-run"], &["old"]] {
        let text = world.remove(words, IN_USE);
        assert!(text.contains("in use by the node `one`") && text.contains("help: "), "{text}");
    }
    // The lease of a killed node ends by itself.
    node.kill();
    let text = world.remove(&["old", "--yes"], IN_USE);
    assert!(text.contains("ends by itself, here until 20"), "{text}");
    eventually("the lease is over", || {
        run(&mut world.removal(&["old", "--dry-run"])).status.success()
    });

    let config = world.configure(&["kept", "old"]);
    let remove = |words: &[&str]| {
        let output =
            run(abreast().args(["set", "remove"]).args(words).arg("--config").arg(&config));
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let (code, text) = remove(&["old", "--yes"]);
    assert!(code == USAGE && text.contains("remove its `[[set]]` there first"), "{text}");
    world.configure(&["kept"]);
    let (code, text) = remove(&["none", "--yes"]);
    assert!(code == USAGE && text.contains("name one of its sets: kept, old"), "{text}");
    let (code, text) = remove(&["old"]);
    assert!(code == USAGE && text.contains("nothing was changed"), "{text}");
    let token = ["token", "create", "--name", "of-old", "--scope", "write", "--set", "old"];
    assert!(run(abreast().args(token).args(["--data", &world.database])).status.success());
    let topics = || {
        let output = run(abreast().args(["hub", "topics", "--data", &world.database]));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(topics().contains("/old/notify/change"), "{}", topics());
    let (code, text) = remove(&["old", "--yes", "--moved-to", "https://new.example/old/"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("set old: 1 resource, 1 change, 0 versions"), "{text}");
    assert!(text.contains("; removed") && text.contains("abreast token revoke of-old"), "{text}");
    world.assert_removed(1);
    let text = topics();
    assert!(!text.contains("/old/") && text.contains("/kept/notify/change"), "{text}");
    let notified =
        "SELECT convert_from(bytes, 'UTF8') FROM abreast.records WHERE name = 'notified'";
    assert!(!world.sql(notified).contains("\"old"), "{}", world.sql(notified));
    let list = listed(&world, Some(&config));
    assert!(list.contains("old  moved to https://new.example/old/"), "{list}");

    let node = world.serve(&["kept"]);
    let head = node.head("/old/r/1?x").unwrap();
    assert!(head.contains(" 308 ") && head.contains("https://new.example/old/r/1?x"), "{head}");
    assert_eq!(node.stop(), Some(0));
    // A set of this name starts a new log.
    let node = world.serve(&["kept", "old"]);
    assert_eq!(node.answer("/old/capabilitylist.xml").unwrap().0, 200);
    assert_eq!(world.sql("SELECT position FROM abreast.sets WHERE slug = 'old'").trim(), "0");
    assert!(!listed(&world, None).contains("moved"));
    assert_eq!(node.stop(), Some(0));
}

#[test]
fn a_removal_that_was_killed_is_continued() {
    let name = "database_sets::a_removal_that_was_killed_is_continued";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let world = World::new(&server, "killed");
    let sets = ["kept", "one", "two", "three", "four"];
    assert_eq!(world.serve(&sets).stop(), Some(0));
    world.record(&sets);
    // By the same command, which prints what the first one counted.
    world.kill_removal("one");
    assert!(listed(&world, None).contains("one  removed"));
    let text = world.remove(&["one", "--yes"], 0);
    assert!(text.contains("set one: 1 resource, 1 change, 0 versions"), "{text}");
    world.assert_removed(4);
    let text = world.remove(&["one", "--yes"], USAGE);
    assert!(text.contains("has no set `one`"), "{text}");
    // By the removal of another set.
    world.kill_removal("two");
    world.remove(&["three", "--yes"], 0);
    world.assert_removed(2);
    // By a node that starts.
    world.kill_removal("four");
    let node = world.serve(&["kept"]);
    eventually("the rows are deleted", || world.count("records WHERE name LIKE 'removing/%'") == 0);
    assert_eq!(node.stop(), Some(0));
    world.assert_removed(1);
    let log = fs::read_to_string(world.at("log")).unwrap();
    assert!(log.contains("deleting the rows of removed sets: four"), "{log}");
}
