//! The state of copies for the public: `status --publish`, and `publish_status` of a job.

use crate::world::{abreast, audit, stop, sync};
use abreast_rdf::{ReadOptions, Syntax};
use abreast_testkit::documents::{BEGIN, document, entry};
use abreast_testkit::pages::Server;
use abreast_testkit::{Running, eventually, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The path of the Source's list, with markup.
const LIST: &str = "/%3Cscript%3Ealert(1)%3C/script%3E/'%22/list.xml";

struct World {
    place: tempfile::TempDir,
    server: Server,
}

impl World {
    fn new() -> Self {
        let world = Self { place: tempfile::tempdir().unwrap(), server: Server::start() };
        world.list(2);
        world
    }

    /// Lists so many resources.
    fn list(&self, number: usize) {
        let of = |number: usize| {
            let body = format!("{number}");
            self.server.body(&format!("/{number}"), body.clone());
            entry(&self.server.url(&format!("/{number}")), body.as_bytes(), "")
        };
        let entries: String = (0..number).map(of).collect();
        let attributes = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
        self.server.body(LIST, document("urlset", &attributes, &entries));
    }

    fn url(&self) -> String {
        // A login, a query and a fragment may be secrets.
        let url = self.server.url(LIST).replace("http://", "http://me:hush@");
        url.replace("%3C", "<").replace("%3E", ">")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The published files: JSON, Turtle and the page.
    fn files(&self) -> (Value, String, String) {
        let read = |name: &str| fs::read_to_string(self.path("public").join(name)).unwrap();
        let json = read("status.json");
        for private in ["hush", &*self.place.path().to_string_lossy(), "attention", "process"] {
            for text in [&json, &read("status.ttl"), &read("index.html")] {
                assert!(!text.contains(private), "{private}: {text}");
            }
        }
        (serde_json::from_str(&json).unwrap(), read("status.ttl"), read("index.html"))
    }

    fn publish(&self, copy: &Path, more: &[&str]) -> (Value, String, String) {
        let output = run(abreast()
            .arg("status")
            .arg(copy)
            .arg("--publish")
            .arg(self.path("public"))
            .args(more));
        assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
        self.files()
    }
}

/// The statements of a document in Turtle at an address, as N-Triples.
fn statements(turtle: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let options = ReadOptions::default().with_base("http://public.example/status.ttl");
    abreast_rdf::read(Syntax::Turtle, turtle.as_bytes(), &options, &mut |quad| {
        lines.insert(quad.to_string());
        ControlFlow::Continue(())
    })
    .unwrap();
    lines
}

fn has(statements: &BTreeSet<String>, part: &str) -> bool {
    statements.iter().any(|line| line.contains(part))
}

#[test]
fn the_state_of_a_copy_is_published_as_json_rdf_and_a_page() {
    let world = World::new();
    let copy = world.path("copy");
    sync(&world.url(), &copy, 0, &["--ignore-robots"]);
    let (json, turtle, page) = world.publish(&copy, &[]);
    let one = &json["copies"][0];
    assert_eq!((&json["type"], &json["in_step"]), (&"published-status".into(), &true.into()));
    assert_eq!((&one["state"], &one["complete"]), (&"in step".into(), &true.into()));
    assert_eq!((&one["resources"], &one["behind_seconds"]), (&2.into(), &0.into()));
    assert_eq!((&one["last_audit"], &one["stalled_since"]), (&Value::Null, &Value::Null));
    assert!(one["last_success"].is_string());
    assert!(page.contains(">in step</p>") && !page.contains("<script"), "{page}");
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
    let read = statements(&turtle);
    let source = world.server.url(LIST);
    for part in [
        "<http://www.w3.org/ns/dcat#dataset> <http://public.example/status.ttl#",
        "<http://www.w3.org/ns/dcat#Dataset>",
        &format!("<http://purl.org/dc/terms/source> <{source}>"),
        &format!("<http://www.w3.org/ns/prov#wasDerivedFrom> <{source}>"),
        "<http://www.w3.org/ns/prov#generatedAtTime> \"",
        "<http://www.w3.org/ns/adms#status> <urn:abreast:status:in-step>",
        "<http://www.w3.org/ns/dqv#isMeasurementOf> <urn:abreast:status:lag>",
        "#value> \"2\"^^<http://www.w3.org/2001/XMLSchema#integer>",
    ] {
        assert!(has(&read, part), "{part}: {read:#?}");
    }

    assert_eq!(audit(&world.url(), &copy), 0);
    let (json, turtle, page) = world.publish(&copy, &[]);
    let found = &json["copies"][0]["last_audit"];
    assert_eq!((&found["result"], &found["full"]), (&"equal".into(), &true.into()));
    assert_eq!(found["same"], 2);
    assert!(page.contains("equal at <time"), "{page}");
    assert!(has(&statements(&turtle), "earl#outcome> <http://www.w3.org/ns/earl#passed>"));

    world.list(3);
    assert_eq!(audit(&world.url(), &copy), 1);
    let (json, turtle, _) = world.publish(&copy, &[]);
    let found = &json["copies"][0]["last_audit"];
    assert_eq!((&found["result"], &found["missing"]), (&"different".into(), &1.into()));
    assert!(has(&statements(&turtle), "earl#outcome> <http://www.w3.org/ns/earl#failed>"));
}

#[test]
fn a_copy_whose_runs_fail_or_stopped_is_stalled() {
    let world = World::new();
    let copy = world.path("copy");
    sync(&world.url(), &copy, 0, &["--ignore-robots"]);
    let first = world.publish(&copy, &[]).0["copies"][0]["last_success"].clone();
    std::thread::sleep(Duration::from_millis(1_100));
    let (json, turtle, page) = world.publish(&copy, &["--stalled-after", "1s"]);
    assert_eq!((&json["copies"][0]["state"], &json["in_step"]), (&"stalled".into(), &false.into()));
    assert!(page.contains("stalled since <time"), "{page}");
    assert!(has(&statements(&turtle), "<urn:abreast:status:stalled-since> \""));

    world.server.remove(LIST);
    let more = ["--ignore-robots", "--retries", "0", "--publish-status"];
    let mut failing = abreast();
    failing.args(["sync", &world.url()]).arg(&copy).args(more).arg(world.path("public"));
    assert_ne!(run(&mut failing).status.code(), Some(0));
    let (json, _, page) = world.files();
    let one = &json["copies"][0];
    assert_eq!((&one["state"], &one["stalled_since"]), (&"stalled".into(), &first), "{one}");
    assert_eq!(one["problems"].as_array().unwrap().len(), 1, "{one}");
    assert!(page.contains("stalled since"), "{page}");
}

#[test]
fn a_job_publishes_its_state_after_a_run_and_while_it_follows() {
    let world = World::new();
    let config = world.path("abreast.toml");
    let job = |name: &str, folder: &str| {
        format!(
            "[[mirror]]\nname = \"{name}\"\nurl = \"{}\"\nfolder = \"{name}\"\nignore_robots = true\npublish_status = \"{folder}\"\n",
            world.url().replace('"', "%22")
        )
    };
    fs::write(&config, job("papers", "public")).unwrap();
    let command = |more: &[&str]| {
        let mut command = abreast();
        command.args(["sync", "--config"]).arg(&config).args(more).current_dir(world.place.path());
        command
    };
    let output = run(&mut command(&["papers", "--dry-run"]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!world.path("public").exists());
    assert_eq!(run(&mut command(&["papers"])).status.code(), Some(0));
    let (json, turtle, _) = world.files();
    assert_eq!(json["copies"][0]["name"], "papers");
    assert!(turtle.contains("<#papers>"), "{turtle}");

    fs::remove_dir_all(world.path("public")).unwrap();
    world.list(3);
    let mut follow = command(&["papers", "--follow", "--interval", "1s"]);
    let child = Running(follow.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    eventually("the state is published", || world.path("public/index.html").exists());
    assert_eq!(world.files().0["copies"][0]["state"], "in step");
    fs::remove_dir_all(world.path("public")).unwrap();
    assert_eq!(stop(child), Some(0));
    assert_eq!(world.files().0["copies"][0]["resources"], 3);

    fs::write(&config, job("papers", "public") + &job("other", "public")).unwrap();
    let output = run(&mut command(&["--all"]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("publish their status"));
}
