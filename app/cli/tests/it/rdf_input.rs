//! RDF as users give it: files beside it, files that cannot be read, misprints, dry runs.

use crate::rdf::{Place, TURTLE, import_into};
use crate::world::{Source, abreast, get};
use abreast_testkit::folder::files;
use abreast_testkit::{Running, eventually, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

const RDF_XML: &str = "<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
    xmlns:e='http://id.example/'><rdf:Description rdf:about='http://id.example/x' e:p='1'/></rdf:RDF>";
const IRI: &str = "<http://id.example/";
const DATA: &str =
    "<http://id.example/a> <http://p> \"1\" .\n<http://id.example/b> <http://p> \"1\" .\n";

/// A static site of the folder; code and errors.
fn build(place: &Place, more: &[&str]) -> (Option<i32>, String) {
    let mut command = abreast();
    command.arg("build").arg(place.path("rdf")).arg("--out").arg(place.path("site")).args(more);
    command.args(["--origin", "rdf", "--name", "set", "--base-url", "https://example.org/"]);
    let output = run(&mut command);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The names of the descriptions in the site.
fn described(place: &Place) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files(&place.path("site/set/r")).into_keys().map(|path| name(Path::new(&path))).collect()
}

#[test]
fn files_that_are_not_read_are_reported() {
    let place = Place::new();
    place.write("one.nt", DATA);
    for (name, text) in [
        ("notes.txt", "text"),
        ("x.n3", DATA),
        ("README", "text"),
        ("sitemap.xml", "<urlset/>"),
        ("good.xml", RDF_XML),
    ] {
        place.write(name, text);
    }
    std::os::unix::fs::symlink("one.nt", place.path("rdf/link.nt")).unwrap();
    let (code, log) = build(&place, &[]);
    assert_eq!(code, Some(0), "{log}");
    for (name, reason) in [
        ("notes.txt", "no ending"),
        ("x.n3", "no ending"),
        ("README", "no ending"),
        ("sitemap.xml", "rdf:RDF"),
        ("link.nt", "links"),
    ] {
        let line = log.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{log}"));
        assert!(line.contains(reason), "{line}");
    }
    assert_eq!(log.matches("is not read").count(), 5, "{log}");
    assert_eq!(described(&place), ["a.nt", "b.nt", "x.nt"]);
}

#[test]
fn relative_iris_need_a_base_and_the_path_of_their_file() {
    let place = Place::new();
    place.write("one.ttl", "<#a> <http://p> <two.jsonld> .");
    place.write("two.jsonld", r#"{"@id": "", "http://p": 1}"#);
    let (code, log) = build(&place, &[]);
    assert!(code == Some(2) && log.contains("one.ttl") && log.contains("line 1"), "{code:?} {log}");
    fs::remove_file(place.path("rdf/one.ttl")).unwrap();
    let (code, log) = build(&place, &[]);
    assert!(code == Some(2) && log.contains("two.jsonld") && log.contains("no base"), "{log}");
    place.write("one.ttl", "<#a> <http://p> <two.jsonld> .");
    let (code, log) = build(&place, &["--base", "http://id.example/d"]);
    assert!(code == Some(2) && log.contains("`base`"), "{log}");
    let (code, log) = build(&place, &["--base", "http://id.example/d/"]);
    assert_eq!(code, Some(0), "{log}");
    let list = fs::read_to_string(place.path("site/set/resourcelist.xml")).unwrap();
    for iri in ["http://id.example/d/one.ttl#a", "http://id.example/d/two.jsonld"] {
        assert!(list.contains(&format!("href=\"{iri}\"")), "{list}");
    }
    let path = place.path("rdf/one.ttl");
    let (code, _, errors) = place.import(&[path.to_str().unwrap()]);
    assert!(code == 2 && errors.contains("line 1"), "{errors}");
    let arguments = [path.to_str().unwrap(), "--base", "http://id.example/doc"];
    assert_eq!(place.import(&arguments).1["created"], Value::from(1));
}

#[test]
fn a_dry_run_of_an_import_records_nothing() {
    let place = Place::new();
    let [one, two] = ["one.ttl", "two.nt"].map(|name| place.path("rdf").join(name));
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    place.write("one.ttl", TURTLE);
    let counts =
        |line: &Value| ["created", "updated", "deleted"].map(|key| line[key].as_u64().unwrap());
    let (code, line, errors) = place.import(&[one, "--dry-run"]);
    assert_eq!((code, counts(&line), &line["dry_run"]), (0, [2, 0, 0], &true.into()), "{errors}");
    assert_eq!(fs::read_dir(place.path("data")).unwrap().count(), 0);
    assert_eq!(counts(&place.import(&[one]).1), [2, 0, 0]);
    place.write("two.nt", "<http://id.example/c> <http://p> \"1\" .\n");
    for more in [&["--dry-run"][..], &["-n"], &[]] {
        let (code, line, errors) = place.import(&[&[one, two], more].concat());
        assert_eq!((code, counts(&line)), (0, [1, 0, 0]), "{errors}");
    }
    for more in [&["--dry-run"][..], &[]] {
        let (code, line, errors) = place.import(&[&["--remove", two], more].concat());
        assert_eq!((code, counts(&line)), (0, [0, 0, 1]), "{errors}");
    }
    let source = place.serve_given();
    let import = |more: &[&str]| {
        let url = source.url();
        crate::rdf::import_into(&["--server", &url], &[&[one, two], more].concat())
    };
    for more in [&["--dry-run"][..], &[], &["--dry-run"]] {
        let (code, line, errors) = import(more);
        let created = u64::from(line["unchanged"] == 2);
        assert_eq!((code, counts(&line)), (0, [created, 0, 0]), "{errors}");
    }
    assert_eq!(import(&["-n"]).1["unchanged"], Value::from(3));
}

#[test]
fn graphs_without_statements_and_missing_files_are_refused() {
    let place = Place::new();
    let path = place.path("rdf/one.nq");
    let path = path.to_str().unwrap();
    place.write("one.nq", &DATA.replace(" .", " <http://g> ."));
    assert_eq!(place.import(&[path]).0, 0);
    for graph in ["http//g", "g"] {
        let (code, _, errors) = place.import(&[path, "--graph", graph]);
        assert!(code == 2 && errors.contains("rdf.graph") && errors.contains(graph), "{errors}");
    }
    for more in [&["--graph", "http://h"][..], &["--graph", "http://g", "--graph", "http://h"]] {
        let (code, _, errors) = place.import(&[&[path], more].concat());
        assert!(code == 2 && errors.contains("graph `http://h` (rdf.graph)"), "{errors}");
        assert!(errors.contains("are http://g") && !errors.contains("confirm"), "{errors}");
    }
    assert_eq!(place.import(&[path, "--graph", "http://g", "--graph", "default"]).0, 0);
    for more in
        [&["none.nt"][..], &[path, "none.nt"], &["--add", "none.nt"], &["--delta", "none.nt"]]
    {
        let (code, _, errors) = place.import(more);
        assert!(code == 2 && errors.contains("cannot read `none.nt`"), "{code} {errors}");
    }
    place.write("i1.txt", DATA);
    let (code, _, errors) = place.import(&[place.path("rdf/i1.txt").to_str().unwrap()]);
    assert!(code == 2 && errors.contains("--format") && errors.contains(".nt"), "{errors}");
}

#[test]
fn invalid_statements_are_left_out_counted_and_named() {
    let place = Place::new();
    let file = place.path("some.nt");
    fs::write(&file, format!("{DATA}<http://id.example/c d> <http://p> \"1\" .\n")).unwrap();
    let file = file.to_str().unwrap();
    let (code, _, errors) = place.import(&[file]);
    assert!(code == 2 && errors.contains("line 3"), "{code} {errors}");
    let (code, summary, errors) = place.import(&[file, "--leave-out-invalid"]);
    assert_eq!((code, &summary["invalid_statements"]), (3, &Value::from(1)), "{errors}");
    assert_eq!(summary["created"], Value::from(2));
    assert!(errors.contains("line 3"), "{errors}");
}

#[test]
fn contexts_of_json_ld_are_given_as_files() {
    let place = Place::new();
    let write = |name: &str, text: &str| {
        fs::write(place.path(name), text).unwrap();
        place.path(name).to_str().unwrap().to_owned()
    };
    let url = "https://ns.example/context";
    let document = |number: usize| {
        format!(
            r#"{{"@context": "{url}", "id": "http://id.example/{number}", "name": "{number}"}}"#
        )
    };
    let context = write("c.json", r#"{"@context": {"id": "@id", "name": "http://p"}}"#);
    let (state, more) = (write("all.jsonld", &document(1)), write("more.jsonld", &document(2)));
    let (code, _, errors) = place.import(&[&*state]);
    assert!(code == 2 && errors.contains(url) && errors.contains("--context URL=FILE"), "{errors}");
    let given = format!("{url}={context}");
    let (code, summary, errors) = place.import(&[&*state, "--context", &given]);
    assert_eq!((code, &summary["created"]), (0, &Value::from(1)), "{errors}");
    let (code, ..) = place.import(&["--add", &more]);
    assert_eq!(code, 2);
    let (code, summary, errors) = place.import(&["--add", &more, "--context", &given]);
    assert_eq!((code, &summary["created"]), (0, &Value::from(1)), "{errors}");
    // Those of Linked Art need no file.
    let linked_art = r#"{"@context": "https://linked.art/ns/v1/linked-art.json", "id": "http://id.example/3",
        "type": "Person", "_label": "Ada"}"#;
    let linked_art = write("la.jsonld", linked_art);
    let (code, summary, errors) = place.import(&["--add", &linked_art]);
    assert_eq!((code, &summary["created"]), (0, &Value::from(1)), "{errors}");
}

#[test]
fn options_without_effect_on_the_input_are_refused() {
    let place = Place::new();
    let write = |name: &str, text: &str| {
        fs::write(place.path(name), text).unwrap();
        place.path(name).to_str().unwrap().to_owned()
    };
    let state = write("all.nt", DATA);
    let delta = write("some.rdfp", "TX .\nTC .\n");
    let records = write("some.ndjson", "");
    let given = format!("http://c={}", write("c.json", r#"{"@context": {}}"#));
    for (input, options) in [
        (&[&*state][..], &["--lenient"][..]),
        (&["--delta", &delta], &["--leave-out-invalid"]),
        (&["--delta", &delta], &["--skolemize", "http://e/"]),
        (&["--add", &state], &["--leave-out-invalid"]),
        (&[&*records], &["--leave-out-invalid"]),
        (&[&*records], &["--confirm-deletions"]),
        (&[&*records], &["--base", "http://e/"]),
        (&[&*records], &["--context", &given]),
        (&[&*records], &["--graph", "http://g"]),
        (&[&*records], &["--lenient"]),
    ] {
        let (code, _, errors) = place.import(&[input, options].concat());
        assert!(code == 2 && errors.contains(options[0]), "{input:?} {options:?}: {code} {errors}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_shown_by_readyz() {
    let place = Place::new();
    place.write("one.nt", DATA);
    let source = place.serve(0);
    let ready = || {
        let (status, body) = get(&source.address, "/readyz").unwrap();
        (status, String::from_utf8(body).unwrap())
    };
    eventually("it is read", || source.get("/set/r/!iri/http%3A/!/id.example/a").is_some());
    assert_eq!(ready(), (200, "ready\n".to_owned()));
    place.write("two.ttl", "<http://id.example/c> <http://p> 'x");
    eventually("the file is named", || ready().1.contains("two.ttl"));
    let (status, text) = ready();
    assert!(status == 200 && text.contains("set `set`: ") && text.contains("line 1"), "{text}");
    place.write("two.ttl", "<http://id.example/c> <http://p> 'x' .");
    eventually("nothing is left to be shown", || ready() == (200, "ready\n".to_owned()));
}

#[test]
fn entities_that_cannot_be_recorded_stop_no_import() {
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    let mut data = format!("<http://id.example/{}> <http://p> \"1\" .\n", "x".repeat(9_000));
    for number in 0..5_000 {
        data.extend([IRI, &number.to_string(), "> <http://p> \"1\" .\n"]);
    }
    let file = place.path("all.nt");
    fs::write(&file, &data).unwrap();
    let file = file.to_str().unwrap();
    let counts = |summary: &Value| (summary["created"].as_u64(), summary["left_out"].as_u64());
    for more in [&["--dry-run"][..], &[]] {
        let (code, summary, errors) = place.import(&[&[file], more].concat());
        assert_eq!((code, counts(&summary)), (3, (Some(5_000), Some(1))), "{errors}");
        assert!(errors.contains("has 9018 bytes"), "{errors}");
    }
    fs::remove_dir_all(place.path("data")).unwrap();
    let source = place.serve_given();
    for more in [&["--dry-run"][..], &[]] {
        let arguments = [&[file], more].concat();
        let (code, summary, errors) = import_into(&["--server", &source.url()], &arguments);
        assert_eq!((code, counts(&summary)), (3, (Some(5_000), Some(1))), "{errors}");
    }
    let list = String::from_utf8(source.get("/set/resourcelist.xml").unwrap()).unwrap();
    assert_eq!(list.matches("<loc>").count(), 5_000);
}

#[test]
fn a_first_import_that_is_killed_is_not_published() {
    // On a busy machine one may end before it is killed, or be killed before it recorded anything.
    let mut sizes = (1..6).chain(1..6).map(|mebibytes| mebibytes << 20);
    assert!(sizes.any(is_killed_and_not_published), "no import was killed half-way");
}

/// Kills a first import when its log has this number of bytes, and checks the published documents.
/// Returns whether the import was killed before its end.
fn is_killed_and_not_published(bytes: u64) -> bool {
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    let file = place.path("all.nt");
    let mut data = String::new();
    for number in 0..40_000 {
        data.extend([IRI, &number.to_string(), "> <http://p> \"1\" .\n"]);
    }
    fs::write(&file, &data).unwrap();
    let file = file.to_str().unwrap();
    let mut command = abreast();
    command.args(["import", "set", file, "--data"]).arg(place.path("data"));
    let mut child = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let logged = || {
        let log = place.path("data/source.db-wal");
        fs::metadata(log).is_ok_and(|log| log.len() > bytes)
    };
    while !logged() && child.0.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let source = Source::listening(&mut place.serving_given());
    let status = |path: &str| get(&source.address, path).unwrap().0;
    let documents = ["/set/resourcelist.xml", "/set/changelist.xml", "/readyz"];
    let before = documents.map(status);
    let (code, summary, errors) = import_into(&["--server", &source.url()], &[file]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(documents.map(status), [200; 3]);
    let of_killed = summary["unchanged"].as_u64().unwrap();
    assert_eq!(summary["created"].as_u64().unwrap() + of_killed, 40_000);
    // An import that was killed before it recorded anything left the set as it was: empty.
    let status = if (1..40_000).contains(&of_killed) { 503 } else { 200 };
    assert_eq!(before, [status; 3], "with {of_killed} recorded");
    status == 503
}
