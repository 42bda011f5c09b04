//! A served store moves from a folder to a database with a bucket and back. A copy that follows
//! notices nothing, tokens work, and a migration that is killed continues.

use crate::world::{Source, abreast, sync};
use abreast_testkit::folder::{files, same};
use abreast_testkit::http::unused_address;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::s3::{S3Server, settings};
use abreast_testkit::{Random, eventually_ok, provided, run, seed};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
const CONTENTS: &str = "s3://bucket/abreast";

struct World {
    place: tempfile::TempDir,
    bucket: S3Server,
    database: String,
    address: String,
}

impl World {
    fn new(test: &str, server: &Postgres) -> Option<Self> {
        let (place, bucket) = (tempfile::tempdir().unwrap(), S3Server::start(test)?);
        let (database, address) = (server.create("moved"), unused_address().to_string());
        let world = Self { place, bucket, database, address };
        for folder in ["papers", "plain"] {
            fs::create_dir(world.at(folder)).unwrap();
            for number in 0..30 {
                let text = format!("{folder} {number} ü").repeat(number * 40 + 1);
                fs::write(world.at(folder).join(format!("{number}.txt")), text).unwrap();
            }
        }
        Some(world)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Writes the configuration of a store; `name` is that of its folder, or `nodes`.
    fn config(&self, name: &str) -> PathBuf {
        let store = match name {
            "nodes" => format!(
                "data = \"{}\"\ncontents = \"{CONTENTS}\"\nscratch = \"{}\"\nnode = \"a\"\n",
                self.database,
                self.at("scratch").display()
            ),
            folder => format!("data = \"{}\"\n", self.at(folder).display()),
        };
        // `[database]` is for nodes only.
        let lease = if name == "nodes" { "[database]\nlease = \"2s\"\n" } else { "" };
        let text = format!(
            "{store}base_url = \"http://{}/\"\n{lease}[api]\nwrite = true\n\
             [[set]]\nname = \"papers\"\nfolder = \"{}\"\ndebounce = \"30ms\"\nversions = \"all\"\n\
             [[set]]\nname = \"plain\"\nfolder = \"{}\"\ndebounce = \"30ms\"\n\
             [[set]]\nname = \"notes\"\norigin = \"records\"\n",
            self.address,
            self.at("papers").display(),
            self.at("plain").display()
        );
        let path = self.at(&format!("{name}.toml"));
        fs::write(&path, text).unwrap();
        path
    }

    fn command(&self) -> Command {
        let mut command = abreast();
        for (name, value) in settings(self.bucket.address()) {
            command.env(name.to_uppercase(), value);
        }
        command
    }

    fn serve(&self, name: &str) -> Source {
        let config = self.config(name);
        let mut command = self.command();
        command.args(["serve", "--listen", &self.address, "--config"]).arg(config);
        Source::run_logged(&mut command, &self.at("log"))
    }

    /// The command of a migration between two stores.
    fn migration(&self, from: &str, to: &str) -> Command {
        let argument = |name: &str| match name {
            "nodes" => self.config(name),
            folder => self.at(folder),
        };
        let mut command = self.command();
        command
            .arg("migrate")
            .arg(argument(from))
            .arg(argument(to))
            .args(["--json", "--sample", "all"]);
        command
    }

    /// Migrates, and returns the summary.
    fn migrate(&self, from: &str, to: &str) -> Value {
        let output = run(&mut self.migration(from, to));
        assert!(output.status.success(), "{}", told(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn url(&self, set: &str) -> String {
        format!("http://{}/{set}/", self.address)
    }

    /// Records a resource stored elsewhere; returns the status of the answer.
    fn record(&self, token: &str, number: u32) -> u16 {
        let body =
            format!("{{\"uri\":\"http://elsewhere.example/{number}\",\"change\":\"created\"}}\n");
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "POST /api/v1/sets/notes/changes HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The next run of both copies finds no change, then a new file arrives.
    fn check_copies(&self, round: u32) {
        for set in ["papers", "plain"] {
            let copy = self.at(&format!("copy-{set}"));
            let summary = sync(&self.url(set), &copy, 0, &[]);
            assert_eq!(summary["mode"], "unchanged", "{set}: {summary}");
            let new = self.at(set).join(format!("new-{round}.txt"));
            fs::write(new, format!("round {round}")).unwrap();
            eventually_ok("the new file arrives", || {
                let summary = sync(&self.url(set), &copy, 0, &[]);
                assert_ne!(summary["mode"], "baseline", "{summary}");
                let updated =
                    summary["updated"].as_u64().unwrap() + summary["deleted"].as_u64().unwrap();
                assert_eq!(updated, 0, "{summary}");
                same(&files(&self.at(set)), &files(&copy))
                    .map_err(|why| format!("{why}: {summary}"))
            });
        }
    }
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The documents of a server whose bytes depend on the log only.
fn documents(source: &Source) -> Vec<Vec<u8>> {
    const PATHS: [&str; 8] = [
        "/papers/capabilitylist.xml",
        "/papers/resourcelist.xml",
        "/papers/changelist.xml",
        "/papers/v0.1/changeset.xml",
        "/plain/resourcelist.xml",
        "/plain/emm/1.0",
        "/notes/changelist.xml",
        "/notes/resourcelist.xml",
    ];
    PATHS.iter().map(|path| source.get(path).unwrap_or_else(|| panic!("{path}"))).collect()
}

fn create_token(data: &Path) -> String {
    let created = ["token", "create", "--name", "writer", "--scope", "write", "--data"];
    let output = run(abreast().args(created).arg(data));
    assert!(output.status.success(), "{}", told(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_copy_does_not_notice_that_its_source_moves() {
    let name = "migrate::a_copy_does_not_notice_that_its_source_moves";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let Some(world) = World::new(name, &server) else { return };
    fs::create_dir(world.at("one")).unwrap();
    let token = create_token(&world.at("one"));

    let source = world.serve("one");
    for set in ["papers", "plain"] {
        sync(&world.url(set), &world.at(&format!("copy-{set}")), 0, &[]);
    }
    world.check_copies_first(&token);
    let before = documents(&source);
    let used = run(&mut world.migration("one", "nodes"));
    assert_eq!(used.status.code(), Some(10), "{}", told(&used));
    assert_eq!(source.stop(), Some(0));

    let summary = world.migrate("one", "nodes");
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["sets"].as_array().unwrap().len(), 3, "{summary}");
    assert!(summary["contents_copied"].as_u64().unwrap() >= 30, "{summary}");
    assert_eq!(summary["contents_verified"], summary["contents_copied"], "{summary}");
    let source = world.serve("nodes");
    assert_eq!(documents(&source), before);
    world.check_copies(1);
    assert_eq!(world.record(&token, 1), 200);
    // The files without stored contents are in the bucket after the first scan.
    let stored = "SELECT count(*) FROM abreast.contents JOIN abreast.sets ON sets.id = set_id \
                  WHERE slug = 'plain' AND needed > 0";
    assert_eq!(server.sql("moved", stored).trim(), "31");
    let plain = source.get("/plain/r/7.txt").unwrap();
    assert_eq!(plain, fs::read(world.at("plain/7.txt")).unwrap());
    let before = documents(&source);
    let used = run(&mut world.migration("nodes", "two"));
    assert_eq!(used.status.code(), Some(10), "{}", told(&used));
    assert_eq!(source.stop(), Some(0));

    world.migrate("nodes", "two");
    let source = world.serve("two");
    assert_eq!(documents(&source), before);
    world.check_copies(2);
    assert_eq!(world.record(&token, 2), 200);
    assert_eq!(world.record("another token", 3), 401);
    assert_eq!(source.stop(), Some(0));
    let checked = run(abreast().args(["check", "--read-data"]).arg(world.at("two")));
    assert!(checked.status.success(), "{}", told(&checked));
    // A second run changes nothing, and another store is refused.
    for (from, to) in [("one", "nodes"), ("nodes", "two")] {
        let second = run(&mut world.migration(from, to));
        assert!(second.status.success(), "{}", told(&second));
        let summary: Value = serde_json::from_slice(&second.stdout).unwrap();
        assert_eq!(summary["complete_before"], true, "{summary}");
    }
    let refused = run(&mut world.migration("two", "nodes"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("a copy of another store"), "{}", told(&refused));
}

impl World {
    /// Some changes before the first migration.
    fn check_copies_first(&self, token: &str) {
        fs::write(self.at("papers/1.txt"), "changed").unwrap();
        fs::remove_file(self.at("papers/2.txt")).unwrap();
        eventually_ok("the changes arrive", || {
            let copy = self.at("copy-papers");
            sync(&self.url("papers"), &copy, 0, &[]);
            same(&files(&self.at("papers")), &files(&copy))
        });
        assert_eq!(self.record(token, 0), 200);
    }

    /// Kills migrations until one of them ends.
    fn migrate_with_kills(&self, from: &str, to: &str, random: &mut Random) -> u32 {
        let mut kills = 0;
        loop {
            let mut command = self.migration(from, to);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            // Each attempt gets more time, so that the last one ends.
            let millis = 40 + random.below(40) + u64::from(kills) * 40;
            std::thread::sleep(Duration::from_millis(millis));
            if let Some(status) = child.try_wait().unwrap() {
                let mut text = String::new();
                child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
                assert!(status.success(), "{status}: {text}");
                return kills;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            self.check_refusal(to);
        }
    }

    /// No server starts with a store that is not complete.
    fn check_refusal(&self, to: &str) {
        let is_unfinished = match to {
            "nodes" => {
                let config = self.config(to);
                let tokens = run(self.command().args(["token", "list", "--config"]).arg(config));
                told(&tokens).contains("is not complete")
            }
            folder => self.at(folder).join("migration").exists(),
        };
        if is_unfinished {
            let config = self.config(to);
            let served = run(self
                .command()
                .args(["serve", "--listen", &self.address, "--config"])
                .arg(config));
            assert_eq!(served.status.code(), Some(2), "{}", told(&served));
            assert!(told(&served).contains("abreast migrate"), "{}", told(&served));
        }
    }
}

#[test]
fn a_migration_that_is_killed_continues() {
    let name = "migrate::a_migration_that_is_killed_continues";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let Some(world) = World::new(name, &server) else { return };
    let (source, mut random) = (world.serve("one"), Random::new(seed(1)));
    let before = documents(&source);
    assert_eq!(source.stop(), Some(0));
    let kills = world.migrate_with_kills("one", "nodes", &mut random);
    let source = world.serve("nodes");
    assert_eq!(documents(&source), before);
    assert_eq!(source.stop(), Some(0));
    let more = world.migrate_with_kills("nodes", "two", &mut random);
    println!("{kills} and {more} kills");
    let source = world.serve("two");
    assert_eq!(documents(&source), before);
    assert_eq!(source.stop(), Some(0));
}
