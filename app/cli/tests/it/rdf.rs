//! Sets of entities on the real binary: from RDF files to copies, through restarts and kills.

use crate::api::send_with;
use crate::world::{Source, abreast, audit, get, sync};
use abreast_rdf::{DescriptionLimits, Entities, ReadOptions, Syntax};
use abreast_testkit::endpoint::{Endpoint, Fault};
use abreast_testkit::folder::files;
use abreast_testkit::{Random, eventually, kills, run, seed};
use oxrdf::{Triple, TripleRef};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Kills of a Source while it reads.
const KILLS: u64 = 15;

pub(crate) struct Place {
    temporary: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { temporary: tempfile::tempdir().unwrap() };
        fs::create_dir(place.path("rdf")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Writes a file into the folder in one step.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path("part"), text).unwrap();
        fs::rename(self.path("part"), self.path("rdf").join(name)).unwrap();
    }

    pub(crate) fn serve(&self, port: u16) -> Source {
        self.serve_with(port, &[])
    }

    pub(crate) fn serve_with(&self, port: u16, more: &[&str]) -> Source {
        Source::start(&self.path("rdf"), port, &[&["--origin", "rdf"], more].concat())
    }

    /// Serves entities that are given through the API.
    pub(crate) fn serve_given(&self) -> Source {
        Source::run(&mut self.serving_given())
    }

    /// The command for that.
    pub(crate) fn serving_given(&self) -> Command {
        let mut command = abreast();
        command.args(["serve", "--origin", "rdf", "--name", "set", "--api-write"]);
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(self.path("data"));
        command
    }

    pub(crate) fn import(&self, arguments: &[&str]) -> (i32, serde_json::Value, String) {
        // An import makes no folder for the store.
        fs::create_dir_all(self.path("data")).unwrap();
        import_into(&["--data", self.path("data").to_str().unwrap()], arguments)
    }
}

pub(crate) fn import_into(place: &[&str], arguments: &[&str]) -> (i32, serde_json::Value, String) {
    let mut command = abreast();
    command.args(["import", "set", "--json"]).args(place).args(arguments);
    let output = run(&mut command);
    let line = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), line, errors)
}

/// The canonical description of each entity of a document.
pub(crate) fn descriptions(syntax: Syntax, text: &str) -> BTreeMap<String, Vec<u8>> {
    let mut triples = Vec::new();
    abreast_rdf::read(syntax, text.as_bytes(), &ReadOptions::default(), &mut |quad| {
        triples.push(Triple::from(TripleRef::from(quad)));
        ControlFlow::Continue(())
    })
    .unwrap();
    let entities = Entities::new(triples.iter().map(Triple::as_ref));
    entities
        .descriptions(DescriptionLimits::default())
        .map(|description| description.map(|found| (found.entity, found.canonical.lines)).unwrap())
        .collect()
}

/// The same of a copy made by `abreast sync`: each file is one description.
fn copied(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    files(folder)
        .into_iter()
        .filter(|(path, _)| !path.starts_with(".abreast"))
        .map(|(path, lines)| {
            let text = String::from_utf8(lines.clone()).unwrap();
            let found = descriptions(Syntax::NTriples, &text);
            assert_eq!(found.len(), 1, "{}", path.display());
            let (iri, canonical) = found.into_iter().next().unwrap();
            assert_eq!(canonical, lines, "what is served is canonical");
            (iri, lines)
        })
        .collect()
}

fn assert_copy_of(source: &Source, copy: &Path, expected: &BTreeMap<String, Vec<u8>>) {
    eventually("the copy has every description", || {
        let output = run(abreast().args(["sync", &source.url()]).arg(copy).arg("--quiet"));
        output.status.success() && &copied(copy) == expected
    });
}

pub(crate) const TURTLE: &str = "@prefix : <http://id.example/> .\n\
    @prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n\
    :a a skos:Concept ; skos:prefLabel 'Ada'@en ; :address [ :city 'London' ; :near [ :name 'x' ] ] .\n\
    :b a skos:Concept ; :knows :a, :b ; :p 'caf\u{e9}' .\n";

#[test]
fn files_of_a_folder_are_published_and_followed() {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = place.serve(0);
    let copy = place.path("copy");
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, TURTLE));
    let changed = TURTLE.replace("London", "Paris").replace(":b a", ":c a");
    place.write("one.ttl", &changed);
    place.write("two.nt", "<http://id.example/d> <http://id.example/p> \"4\" .\n");
    let both = format!("{changed}:d :p '4' .");
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, &both));
    // A file that cannot be read changes nothing.
    place.write("two.nt", "<http://id.example/d> <http://id.example/p> \"5 .\n");
    std::thread::sleep(Duration::from_secs(2));
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, &both));
    let port = source.port();
    assert_eq!(source.stop(), Some(0));
    fs::remove_file(place.path("rdf").join("two.nt")).unwrap();
    let source = place.serve(port);
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, &changed));
    assert_eq!(audit(&source.url(), &copy), 0);
    let changes = String::from_utf8(source.get("/api/v1/sets/set/changes").unwrap()).unwrap();
    assert!(changes.contains("\"uri\":\"http://id.example/c\""), "{changes}");
}

#[test]
fn a_description_is_served_in_the_syntax_asked_for() {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = place.serve(0);
    let path = "/set/r/!iri/http%3A/!/id.example/a";
    eventually("the entity is there", || source.get(path).is_some());
    let expected = descriptions(Syntax::Turtle, TURTLE)["http://id.example/a"].clone();
    assert_eq!(source.get(path).unwrap(), expected);
    for syntax in [Syntax::NTriples, Syntax::Turtle, Syntax::RdfXml, Syntax::JsonLd] {
        let body = source.get(&format!("{path}?syntax={}", syntax.extension())).unwrap();
        let found = descriptions(syntax, &String::from_utf8(body).unwrap());
        assert_eq!(found["http://id.example/a"], expected, "{syntax}");
    }
    let page = String::from_utf8(source.get(&format!("{path}?syntax=html")).unwrap()).unwrap();
    assert!(
        page.contains("<h1 dir=\"auto\" lang=\"en\">Ada</h1>") && page.contains("London"),
        "{page}"
    );
    for missing in ["?syntax=pdf", "?x", "/b"] {
        let (status, _) = get(&source.address, &format!("{path}{missing}")).unwrap();
        assert_eq!(status, 404, "{missing}");
    }
}

#[test]
fn import_replaces_the_state_of_a_set() {
    let place = Place::new();
    let file = place.path("x.ttl");
    let path = file.to_str().unwrap();
    fs::write(&file, TURTLE).unwrap();
    let (code, line, _) = place.import(&[path]);
    assert_eq!((code, &line["created"], &line["entities"]), (0, &2.into(), &2.into()));
    let (code, line, _) = place.import(&[path]);
    assert_eq!((code, &line["unchanged"]), (0, &2.into()));
    fs::write(&file, "@prefix : <http://id.example/> .\n:a :p 'x\n").unwrap();
    let (code, _, errors) = place.import(&[path]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("line 2"), "{errors}");
    fs::write(&file, "").unwrap();
    let (code, _, errors) = place.import(&[path]);
    assert_eq!(code, 7, "{errors}");
    assert!(errors.contains("--confirm-deletions"), "{errors}");
    let (code, line, _) = place.import(&[path, "--confirm-deletions"]);
    assert_eq!((code, &line["deleted"]), (0, &2.into()));
    let (code, _, errors) = place.import(&[place.path("none.ttl").to_str().unwrap()]);
    assert_eq!(code, 2, "{errors}");
}

#[test]
fn an_import_without_a_server_keeps_the_first_description() {
    for is_configured in [true, false] {
        let place = Place::new();
        let (data, config, file) = (place.path("data"), place.path("a.toml"), place.path("x.nt"));
        let text = format!(
            "listen = \"127.0.0.1:0\"\ndata = {data:?}\n[[set]]\nname = \"set\"\norigin = \"rdf\"\nversions = 5\n"
        );
        fs::write(&config, text).unwrap();
        let import = |label: &str| {
            fs::write(&file, format!("<http://e.org/x> <http://e.org/label> \"{label}\" .\n"))
                .unwrap();
            fs::create_dir_all(&data).unwrap();
            let store = if is_configured { ("--config", &config) } else { ("--data", &data) };
            let (code, _, errors) =
                import_into(&[store.0, store.1.to_str().unwrap()], &[file.to_str().unwrap()]);
            assert_eq!(code, 0, "{errors}");
        };
        let serve = || Source::run(abreast().args(["serve", "--config"]).arg(&config));
        let mementos = |source: &Source| {
            let path = format!("/timemap/json/{}set/r/!iri/http%3A/!/e.org/x", source.url());
            let map: serde_json::Value = serde_json::from_slice(&source.get(&path)?).unwrap();
            Some(map["mementos"]["list"].as_array().unwrap().len())
        };
        import("one");
        let source = serve();
        // Without the configuration, nothing stated at the import that the set has versions: what it has counts as one now.
        assert_eq!(mementos(&source), Some(1));
        assert_eq!(source.stop(), Some(0));
        import("two");
        let source = serve();
        assert_eq!(mementos(&source), Some(2));
        let page = source.get("/set/emm/0.1/patches/page/1").unwrap();
        let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
        for (item, row) in page["orderedItems"].as_array().unwrap().iter().zip(["one", "two"]) {
            let patch = item["instrument"]["content"].as_str().unwrap();
            assert!(patch.contains(&format!("A <http://e.org/x> <http://e.org/label> \"{row}\"")));
        }
        assert_eq!(page["orderedItems"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn an_instrument_is_rdf_patch_where_that_is_accepted() {
    let place = Place::new();
    place.write("one.nt", "<http://e.org/x> <http://e.org/label> \"one\" .\n");
    let source = place.serve_with(0, &["--versions", "5"]);
    let path = "/set/emm/0.1/activity/1/instrument/1";
    eventually("it is published", || source.get(path).is_some());
    let ask = |accept: &str| {
        let mut stream = TcpStream::connect(&source.address).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.to_ascii_lowercase()
    };
    for (accept, media_type) in [
        ("application/rdf-patch", "application/rdf-patch"),
        ("application/rdf-patch, application/json;q=0.5", "application/rdf-patch"),
        ("application/json", "application/json"),
        ("application/rdf-patch;q=0, */*", "application/"),
        ("*/*", "application/"),
    ] {
        let answer = ask(accept);
        assert!(answer.starts_with("http/1.1 200 "), "{accept}: {answer}");
        assert!(answer.contains(&format!("\r\ncontent-type: {media_type}")), "{accept}: {answer}");
        let vary = answer.lines().find(|line| line.starts_with("vary:")).unwrap_or_default();
        assert!(vary.contains("accept,"), "{accept}: {vary}");
        let is_patch = answer.split_once("\r\n\r\n").unwrap().1.starts_with("h id ");
        assert_eq!(is_patch, media_type == "application/rdf-patch", "{accept}: {answer}");
    }
}

#[test]
fn a_description_can_be_put_through_the_api() {
    let place = Place::new();
    let source = place.serve_given();
    let put = |iri: &str, content_type: &str, text: &str| {
        let target = format!("/api/v1/sets/set/resource?uri={}", iri.replace(':', "%3A"));
        let headers = format!("Content-Type: {content_type}\r\n");
        let answer = send_with(&source.address, "PUT", &target, &headers, text.as_bytes());
        answer.map(|(status, body)| (status, body.to_string())).unwrap()
    };
    let turtle = "<> <http://p> [ <http://q> 'x' ] .";
    let (status, body) = put("http://id.example/a", "text/turtle", turtle);
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"recorded\":1"), "{body}");
    let (_, body) = put("http://id.example/a", "text/turtle", turtle);
    assert!(body.contains("\"unchanged\":1"), "{body}");
    for (content_type, text, expected) in [
        ("text/turtle", "<http://id.example/b> <http://p> 1 .", "another entity"),
        ("text/turtle", "<> <http://p> 'x", "line 1"),
        ("text/turtle", "", "nothing is stated"),
        ("text/turtle", "<> <http://p> 1 . [] <http://p> 2 .", "not part of the description"),
        ("text/html", "<p>", "no syntax of RDF"),
    ] {
        let (status, body) = put("http://id.example/a", content_type, text);
        assert!(matches!(status, 400 | 422) && body.contains(expected), "{status} {body}");
    }
    let copy = place.path("copy");
    let stated = turtle.replace("<>", "<http://id.example/a>");
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, &stated));
}

#[test]
fn states_and_differences_are_imported_into_a_running_server() {
    let place = Place::new();
    let source = place.serve_given();
    let (url, copy) = (source.url(), place.path("copy"));
    let import = |arguments: &[&str]| import_into(&["--server", &url], arguments);
    let path = |name: &str| place.path("rdf").join(name).to_str().unwrap().to_owned();
    place.write("one.ttl", TURTLE);
    place.write(
        "two.nq",
        "<http://id.example/d> <http://p> _:x <http://g> .\n_:x <http://p> \"x\" <http://g> .\n",
    );
    let (code, line, errors) = import(&[&path("one.ttl"), &path("two.nq")]);
    assert_eq!((code, line["created"].as_u64()), (0, Some(3)), "{errors}");
    let both = format!("{TURTLE}:d <http://p> [ <http://p> 'x' ] .");
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, &both));
    let (code, line, _) = import(&[&path("one.ttl"), &path("two.nq")]);
    assert_eq!((code, line["unchanged"].as_u64()), (0, Some(3)));
    place.write("patch", "A <http://id.example/e> <http://p> \"1\" .\nD <http://id.example/b> <http://none> \"1\" .\n");
    let (code, _, errors) = import(&["--delta", &path("patch")]);
    assert_eq!(code, 2);
    assert!(errors.contains("is not there"), "{errors}");
    place.write("new.nt", "<http://id.example/e> <http://p> \"1\" .\n");
    let (code, line, errors) = import(&["--add", &path("new.nt")]);
    assert_eq!((code, line["created"].as_u64()), (0, Some(1)), "{errors}");
    assert_copy_of(
        &source,
        &copy,
        &descriptions(Syntax::Turtle, &format!("{both}:e <http://p> '1' .")),
    );
    // Wrong input is found before it is sent, or by the server; nothing is recorded.
    place.write("wrong.nt", "<http://id.example/e> <http://p> .\n");
    let (code, _, errors) = import(&[&path("wrong.nt")]);
    assert!(code == 2 && errors.contains("line 1"), "{errors}");
    let post = |query: &str, content_type: &str, text: &str| {
        let target = format!("/api/v1/sets/set/entities{query}");
        let headers = format!("Content-Type: {content_type}\r\n");
        let answer = send_with(&source.address, "POST", &target, &headers, text.as_bytes());
        answer.map(|(status, body)| (status, body.to_string())).unwrap()
    };
    for (query, content_type, text, status, problem) in [
        ("", "text/turtle", "", 400, "`as`"),
        ("?as=state", "application/rdf-patch", "", 400, "Content-Type"),
        ("?as=difference", "text/turtle", "", 400, "Content-Type"),
        ("?as=state", "text/turtle", "<http://a> <http://p> 'x", 422, "line 1"),
        ("?as=difference", "application/rdf-patch", "X", 422, "RDF Patch"),
    ] {
        let (found, body) = post(query, content_type, text);
        assert_eq!(found, status, "{body}");
        assert!(body.contains(problem), "{body}");
    }
    let many: String =
        (0..20).fold(String::new(), |text, n| format!("{text}<http://a/{n}> <http://p> {n} .\n"));
    assert_eq!(post("?as=state", "text/turtle", &many).0, 200);
    let (status, body) = post("?as=state", "text/turtle", "<http://a/1> <http://p> 1 .");
    assert!(status == 409 && body.contains("19 of 20 entities"), "{body}");
    assert_copy_of(&source, &place.path("other"), &descriptions(Syntax::Turtle, &many));
}

#[test]
fn shared_blank_nodes_are_counted_and_can_get_iris() {
    let place = Place::new();
    place
        .write("one.ttl", "@prefix : <http://id.example/> .\n:a :p _:x . :b :p _:x . _:x :q 1 .\n");
    let source = place.serve(0);
    let shared = |source: &Source, count: u32| {
        eventually("blank nodes are counted", || {
            let metrics = String::from_utf8(source.get("/metrics").unwrap()).unwrap();
            metrics.contains(&format!("abreast_source_shared_blank_nodes{{set=\"set\"}} {count}\n"))
        });
    };
    shared(&source, 1);
    assert_eq!(source.stop(), Some(0));
    std::thread::sleep(Duration::from_millis(200));
    let options = ["--origin", "rdf", "--skolemize", "http://id.example"];
    let source = Source::start(&place.path("rdf"), 0, &options);
    shared(&source, 0);
    let changes = String::from_utf8(source.get("/api/v1/sets/set/changes").unwrap()).unwrap();
    let named = "\"uri\":\"http://id.example/.well-known/genid/";
    assert_eq!(changes.matches(named).count(), 1, "{changes}");
}

#[test]
fn a_difference_is_imported_whole_or_not_at_all() {
    let place = Place::new();
    place.write("all.ttl", TURTLE);
    let all = place.path("rdf/all.ttl");
    assert_eq!(place.import(&[all.to_str().unwrap()]).0, 0);
    place.write("patch", "A <http://id.example/c> <http://p> \"1\" .\nD <http://id.example/b> <http://id.example/p> \"none\" .\n");
    let patch = place.path("rdf/patch");
    let patch = patch.to_str().unwrap();
    let (code, _, errors) = place.import(&["--delta", patch]);
    assert_eq!(code, 2);
    assert!(errors.contains("is not there") && errors.contains("--lenient"), "{errors}");
    let (code, line, errors) = place.import(&["--delta", patch, "--lenient"]);
    assert_eq!(
        (code, line["created"].as_u64(), line["unchanged"].as_u64()),
        (0, Some(1), Some(1)),
        "{errors}"
    );
    place.write("old.nt", "<http://id.example/c> <http://p> \"1\" .\n");
    place.write("new.ttl", "<http://id.example/d> <http://p> [ <http://p> 2 ] .");
    let (old, new) = (place.path("rdf/old.nt"), place.path("rdf/new.ttl"));
    let (code, line, errors) =
        place.import(&["--remove", old.to_str().unwrap(), "--add", new.to_str().unwrap()]);
    assert_eq!(
        (code, line["created"].as_u64(), line["deleted"].as_u64()),
        (0, Some(1), Some(1)),
        "{errors}"
    );
    assert_eq!(place.import(&["--add", new.to_str().unwrap(), patch]).0, 2);
}

#[test]
fn pushed_fragments_are_recorded_together_or_not_at_all() {
    let place = Place::new();
    let mut command = abreast();
    command.args(["serve", "--origin", "rdf", "--name", "set", "--api-write"]);
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(place.path("data"));
    let source = Source::run(&mut command);
    let push = |query: &str, content_type: &str, body: &[u8]| {
        let target = format!("/api/v1/sets/set/push?{query}");
        let headers = if content_type.is_empty() {
            String::new()
        } else {
            format!("Content-Type: {content_type}\r\n")
        };
        let answer = send_with(&source.address, "POST", &target, &headers, body);
        answer.map(|(status, body)| (status, body.to_string())).unwrap()
    };
    let (a, b) = ("resource=http%3A%2F%2Fid.example%2Fa", "resource=http%3A%2F%2Fid.example%2Fb");
    let both = format!("{a}&{b}");
    let line = |name: &str, value: u32| {
        format!(
            "<http://id.example/{name}> <http://p> _:{value} .\n_:{value} <http://q> \"{value}\" .\n"
        )
    };
    let n_triples = "application/n-triples";
    let (status, body) = push(&both, "text/plain", (line("a", 1) + &line("b", 2)).as_bytes());
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"recorded\":2"), "{body}");
    let copy = place.path("copy");
    let stated = |text: &str| descriptions(Syntax::NTriples, text);
    assert_copy_of(&source, &copy, &stated(&(line("a", 1) + &line("b", 2))));
    // Nothing of a request is recorded that is wrong in one place.
    let graph = format!("graph=http%3A%2F%2F{}%2Fset%2Fsdshare", source.address);
    for (query, content_type, body, expected) in [
        (both.as_str(), n_triples, line("a", 7) + "<http://id.example/b> <http://p> \"x", 422),
        (&both, n_triples, line("a", 7) + &line("c", 7), 422),
        (&both, n_triples, line("a", 7) + "_:z <http://p> \"1\" .\n", 422),
        (&both, "text/html", line("a", 7), 415),
        (&both, "", line("a", 7), 415),
        ("resource=a", n_triples, line("a", 7), 400),
        ("resource=http%3A%2F%2Fid.example%2F%3E%20%7D", n_triples, String::new(), 400),
        (&format!("{a}&graph=http://h/other"), n_triples, line("a", 7), 400),
    ] {
        let (status, answer) = push(query, content_type, body.as_bytes());
        assert_eq!(status, expected, "{query} {answer}");
    }
    assert_copy_of(&source, &copy, &stated(&(line("a", 1) + &line("b", 2))));
    let mut stream = TcpStream::connect(&source.address).unwrap();
    let head = format!("POST /api/v1/sets/set/push?{a} HTTP/1.1\r\nHost: localhost\r\n");
    let length = (16 << 20) + 1;
    write!(stream, "{head}Content-Type: {n_triples}\r\nContent-Length: {length}\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    // Of which nothing is stated is deleted; again, that is nothing new.
    for expected in ["\"recorded\":2,\"unchanged\":0", "\"recorded\":0,\"unchanged\":2"] {
        let (status, body) = push(&format!("{both}&{graph}"), n_triples, line("b", 3).as_bytes());
        assert!(status == 200 && body.contains(expected), "{body}");
    }
    assert_copy_of(&source, &copy, &stated(&line("b", 3)));
    let (status, body) = push(b, "", b"");
    assert!(status == 200 && body.contains("\"recorded\":1"), "{body}");
    // Where files decide, nothing is taken.
    place.write("one.ttl", TURTLE);
    let files = Source::start(&place.path("rdf"), 0, &["--origin", "rdf", "--api-write"]);
    let target = format!("/api/v1/sets/set/push?{a}");
    let headers = "Content-Type: application/n-triples\r\n";
    let (status, body) =
        send_with(&files.address, "POST", &target, headers, line("a", 7).as_bytes()).unwrap();
    assert_eq!(status, 409, "{body}");
}

#[test]
fn the_page_of_an_entity_shows_what_changed() {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = place.serve_with(0, &["--versions", "10"]);
    let path = "/set/r/!iri/http%3A/!/id.example/a";
    let page = || {
        let page = source.get(&format!("{path}?syntax=html")).unwrap_or_default();
        String::from_utf8(page).unwrap()
    };
    eventually("the entity is there", || page().contains("London"));
    let change = TURTLE.replace("London", "Paris").replace("'Ada'@en", "'<Ada>'@en");
    place.write("one.ttl", &change);
    eventually("the change is shown", || page().contains("Paris"));
    let page = page();
    let changes = page.split_once("<h2>Changes</h2>").unwrap().1;
    assert!(changes.contains("statements removed: 2, added: 2"), "{changes}");
    let row = |sign: &str, value: &str| {
        let sign = format!("<td>{sign}</td>");
        let rows = changes.split("</tr>").filter(|row| row.contains(&sign));
        rows.filter(|row| row.contains(value)).count()
    };
    assert_eq!((row("\u{2212}", "London"), row("+", "Paris")), (1, 1), "{changes}");
    assert_eq!((row("\u{2212}", "Ada"), row("+", "&lt;Ada&gt;")), (1, 1), "{changes}");
}

#[test]
fn a_static_site_has_each_description_as_a_file() {
    let place = Place::new();
    let site = place.path("site");
    let build = || {
        let mut command = abreast();
        command.arg("build").arg(place.path("rdf")).arg("--out").arg(&site);
        command.args(["--origin", "rdf", "--name", "set", "--base-url", "https://example.org/"]);
        let output = run(&mut command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let of_site = || {
        let all = files(&site.join("set/r"));
        all.into_values().map(|lines| {
            let text = String::from_utf8(lines.clone()).unwrap();
            (descriptions(Syntax::NTriples, &text).into_keys().next().unwrap(), lines)
        })
    };
    let first =
        format!("{TURTLE}<http://id.example/a/below> :p 1 . <http://id.example/a.nt/b> :p 2 .");
    place.write("one.ttl", &first);
    build();
    assert_eq!(of_site().collect::<BTreeMap<_, _>>(), descriptions(Syntax::Turtle, &first));
    let list = fs::read_to_string(site.join("set/resourcelist.xml")).unwrap();
    let loc = "<loc>https://example.org/set/r/!iri/http%3A/!/id.example/a.nt</loc>";
    assert!(list.contains(loc), "{list}");
    assert!(site.join("set/r/!iri/http:/!/id.example/a.nt").is_file());
    let second = first.replace("London", "Paris").replace(":b a", ":c a");
    place.write("one.ttl", &second);
    build();
    assert_eq!(of_site().collect::<BTreeMap<_, _>>(), descriptions(Syntax::Turtle, &second));
    let changes = fs::read_to_string(site.join("set/changelist.xml")).unwrap();
    assert_eq!(changes.matches("change=\"deleted\"").count(), 1);
    assert_eq!(changes.matches("change=\"updated\"").count(), 1);
}

#[test]
fn long_names_of_entities_do_not_stop_a_static_site() {
    let place = Place::new();
    let site = place.path("site");
    let build = || {
        let mut command = abreast();
        command.arg("build").arg(place.path("rdf")).arg("--out").arg(&site);
        command.args(["--origin", "rdf", "--name", "set", "--base-url", "https://example.org/"]);
        let output = run(&mut command);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let iri = |length| format!("<http://id.example/{}>", "x".repeat(length));
    place.write("one.nt", &format!("{} <urn:p> <urn:o> .\n<urn:a> <urn:p> <urn:o> .\n", iri(600)));
    assert_eq!(build().0, Some(0));
    assert_eq!(files(&site.join("set/r")).len(), 2);
    let list = fs::read_to_string(site.join("set/resourcelist.xml")).unwrap();
    let address = list.split("<loc>https://example.org/").find(|loc| loc.contains("xxx")).unwrap();
    let path = address.split('<').next().unwrap().replace("%3A", ":");
    let bytes = fs::read_to_string(site.join(path)).unwrap();
    assert!(bytes.starts_with(&iri(600)), "{bytes}");

    place.write("two.nt", &format!("{} <urn:p> <urn:o> .\n", iri(4_000)));
    let (code, warnings) = build();
    assert!(code == Some(3) && warnings.contains("`http://id.example/xxx"), "{code:?} {warnings}");
    assert!(warnings.contains("is not in the site") && warnings.contains("3500"), "{warnings}");
    assert_eq!(files(&site.join("set/r")).len(), 2);
    fs::remove_file(place.path("rdf/two.nt")).unwrap();
    place.write("one.nt", "<urn:a> <urn:p> <urn:o> .\n");
    assert_eq!(build().0, Some(0));
    assert_eq!(files(&site.join("set/r")).len(), 1);
}

#[test]
fn a_lost_description_is_read_again_after_a_repair() {
    let place = Place::new();
    place.write("one.ttl", TURTLE);
    let source = place.serve(0);
    let port = source.port();
    let copy = place.path("copy");
    let expected = descriptions(Syntax::Turtle, TURTLE);
    assert_copy_of(&source, &copy, &expected);
    assert_eq!(source.stop(), Some(0));
    let store = place.path("rdf").join(".abreast");
    fs::remove_dir_all(store.join("contents")).unwrap();
    fs::create_dir(store.join("contents")).unwrap();
    let check = run(abreast().arg("check").arg(&store));
    assert_ne!(check.status.code(), Some(0));
    let repair = run(abreast().arg("repair").arg(&store));
    assert_eq!(repair.status.code(), Some(0), "{}", String::from_utf8_lossy(&repair.stderr));
    let source = place.serve(port);
    fs::remove_dir_all(&copy).unwrap();
    assert_copy_of(&source, &copy, &expected);
    assert_eq!(source.stop(), Some(0));
    let check = run(abreast().arg("check").arg(&store));
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stdout));
}

/// A random state: statements about a few hundred entities.
fn state(random: &mut Random) -> String {
    let mut text = String::from("@prefix : <http://id.example/> .\n");
    for entity in 0..300 {
        if random.below(10) == 0 {
            continue;
        }
        let (value, below) = (random.below(3), random.below(3));
        writeln!(text, ":e{entity} :p {value} ; :q [ :r {below} ; :s [ :t {entity} ] ] .").unwrap();
    }
    text
}

#[test]
fn kills_between_and_inside_of_states_lose_nothing() {
    let (kills, seed) = (kills(KILLS), seed(1));
    let mut random = Random::new(seed);
    let place = Place::new();
    let mut text = state(&mut random);
    place.write("all.ttl", &text);
    let source = place.serve(0);
    let port = source.port();
    let copy = place.path("copy");
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, &text));
    let mut source = Some(source);
    for _ in 0..kills {
        text = state(&mut random);
        place.write("all.ttl", &text);
        std::thread::sleep(Duration::from_millis(random.below(1_500)));
        source.take().unwrap().kill();
        source = Some(place.serve(port));
    }
    let source = source.unwrap();
    assert_copy_of(&source, &copy, &descriptions(Syntax::Turtle, &text));
    assert_eq!(sync(&source.url(), &copy, 0, &[])["updated"], 0);
    assert_eq!(audit(&source.url(), &copy), 0);
}

#[test]
fn entities_of_an_endpoint_are_published_and_followed() {
    let (place, endpoint) = (Place::new(), Endpoint::start());
    let text = |city: &str| {
        format!(
            "<http://id.example/a> <http://p/city> \"{city}\" .\n<http://id.example/b> <http://p/by> _:x .\n\
             _:x <http://p/name> \"x\" .\n"
        )
    };
    endpoint.update(&format!("INSERT DATA {{ {} }}", text("London")));
    fs::write(place.path("secret"), "hush").unwrap();
    let config = place.path("abreast.toml");
    let set = |more: &str| {
        let data = place.path("data");
        let text = format!(
            "data = {data:?}\n[[set]]\nname = \"set\"\norigin = \"sparql\"\n[set.endpoint]\nurl = {:?}\nevery = \"1s\"\n\
             token_file = {:?}\n{more}\n",
            endpoint.query_url(),
            place.path("secret")
        );
        fs::write(&config, text).unwrap();
        config.to_str().unwrap().to_owned()
    };
    let source = Source::start_config(&set(""));
    let copy = place.path("copy");
    assert_copy_of(&source, &copy, &descriptions(Syntax::NTriples, &text("London")));
    assert!(
        endpoint
            .heads()
            .iter()
            .all(|head| head.to_lowercase().contains("authorization: bearer hush"))
    );
    endpoint.update(
        "DELETE DATA { <http://id.example/a> <http://p/city> \"London\" } ;
         INSERT DATA { <http://id.example/a> <http://p/city> \"Paris\" }",
    );
    assert_copy_of(&source, &copy, &descriptions(Syntax::NTriples, &text("Paris")));
    // An endpoint that fails changes nothing, and the server stays ready.
    endpoint.judge_queries(|_| Some(Fault::Status(400)));
    eventually("the failure is noticed", || {
        let sets = String::from_utf8(source.get("/api/v1/sets").unwrap()).unwrap();
        sets.contains("\"state\":\"missing\"")
    });
    assert!(source.get("/readyz").is_some());
    assert_copy_of(&source, &copy, &descriptions(Syntax::NTriples, &text("Paris")));
    endpoint.judge_queries(|_| None);
    let port = source.port();
    assert_eq!(source.stop(), Some(0));
    let source = Source::start_config_at(&set("entities = \"?entity ?p ?o\"\nbatch = 1"), port);
    endpoint.update("DELETE WHERE { <http://id.example/a> ?p ?o }");
    let mut expected = descriptions(Syntax::NTriples, &text("Paris"));
    expected.remove("http://id.example/a");
    assert_copy_of(&source, &copy, &expected);
    assert_eq!(place.import(&["--config", &set(""), "x.nt"]).0, 2);
    // A wrong configuration is refused with its line.
    let wrong = set("graph = \"none\"\nentities = \"?x ?p ?o\"\nbatch = 0\nuser = \"me\"");
    let output = run(abreast().args(["serve", "--config", &wrong]));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    for part in ["`endpoint.graph`", "`endpoint.entities`", "`endpoint.batch`", "`endpoint.user`"] {
        assert!(errors.contains(part), "{part} in {errors}");
    }
}

/// Documents that list what a set has.
const LISTING: [&str; 12] = [
    "resourcelist.xml",
    "changelist.xml",
    "emm/1.0",
    "emm/1.0/page/1",
    "emm/1.0/latest",
    "emm/0.1",
    "iiif",
    "sdshare/fragments",
    "v0.1/sitemap.xml",
    "v0.1/changeset.xml",
    "sitemap.xml",
    "changes.json",
];

/// Of a set that was never read as a whole no protocol shows a part, nor that it is empty.
#[test]
fn a_set_that_was_never_read_is_not_published() {
    let place = Place::new();
    place.write("a.ttl", TURTLE);
    place.write("b.ttl", "<http://id.example/z> a .\n");
    let start = || Source::start_unready(&place.path("rdf"), 0, &["--origin", "rdf"]);
    let mut source = start();
    let copy = |number: usize| place.path(&format!("copy{number}"));
    for restarts in [false, true] {
        if restarts {
            assert_eq!(source.stop(), Some(0));
            source = start();
        }
        eventually("it is tried", || {
            let ready = get(&source.address, "/readyz").unwrap();
            ready.0 == 503
        });
        for path in LISTING {
            let (status, body) = get(&source.address, &format!("/set/{path}")).unwrap();
            assert!(
                matches!(status, 503 | 404),
                "{path}: {status} {}",
                String::from_utf8_lossy(&body)
            );
        }
        for (number, feed) in
            ["", "set/emm/1.0", "sdshare", "set/v0.1/sitemap.xml"].iter().enumerate()
        {
            let url = format!("{}{feed}", source.url());
            let output =
                run(abreast().args(["sync", &url]).arg(copy(number)).args(["--retries", "0"]));
            assert_ne!(output.status.code(), Some(0), "{feed}");
        }
    }
    place.write("b.ttl", "<http://id.example/z> a <http://ns.example/Z> .\n");
    eventually("it is ready", || get(&source.address, "/readyz").unwrap().0 == 200);
    let found: Vec<_> =
        LISTING.iter().filter(|path| source.get(&format!("/set/{path}")).is_some()).collect();
    assert!(found.len() >= 9, "{found:?}");
    for (number, feed) in ["", "set/emm/1.0", "sdshare", "set/v0.1/sitemap.xml"].iter().enumerate()
    {
        let url = format!("{}{feed}", source.url());
        let output = run(abreast().args(["sync", &url]).arg(copy(number)));
        assert_eq!(
            output.status.code(),
            Some(0),
            "{feed}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_set_whose_first_import_failed_may_be_filled_another_way() {
    let place = Place::new();
    fs::write(place.path("wrong.ttl"), "<http://id.example/z> a .").unwrap();
    let (code, _, errors) = place.import(&[place.path("wrong.ttl").to_str().unwrap()]);
    assert_ne!(code, 0, "{errors}");
    // It is ready, as an empty set.
    let source = place.serve_given();
    assert!(source.get("/set/resourcelist.xml").is_some());
}
