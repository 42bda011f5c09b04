//! Change feeds in static sites on the real binary: behind a server that only sends files.

use crate::build::file_server_with;
use crate::rdf::{Place, TURTLE, descriptions};
use crate::world::{abreast, sync};
use abreast_rdf::Syntax;
use abreast_testkit::folder::files;
use abreast_testkit::http::{Request, Server};
use abreast_testkit::run;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A web server that knows media types by the names of files, and nothing else.
fn file_server(root: &Path) -> Server {
    file_server_with(root, |path| {
        let kind = match path.extension().and_then(|end| end.to_str()) {
            Some("json") => "application/json",
            Some("xml") => "application/xml",
            Some("nt") => "application/n-triples",
            Some("html") => "text/html",
            _ => "application/octet-stream",
        };
        format!("Content-Type: {kind}\r\n")
    })
}

/// Builds a site of entities.
fn build_entities(place: &Place, server: &Server) {
    let mut command = abreast();
    command.arg("build").arg(place.path("rdf")).arg("--out").arg(place.path("site"));
    command.args(["--origin", "rdf", "--name", "set", "--base-url", &server.url("/")]);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn site(place: &Place) -> PathBuf {
    fs::create_dir_all(place.path("site")).unwrap();
    place.path("site")
}

/// The descriptions in files of N-Quads.
fn copied(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let is_data = |path: &Path| path.extension().is_some_and(|end| end == "nq");
    let files = files(folder).into_iter().filter(|(path, _)| is_data(path));
    let text: String = files.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect();
    descriptions(Syntax::NQuads, &text)
}

#[test]
fn entities_of_a_static_site_are_followed() {
    let place = Place::new();
    let server = file_server(&site(&place));
    let many: String = (0..1_100).fold(String::new(), |mut text, number| {
        writeln!(text, "<http://id.example/n{number}> <http://p.example/p> {number} .").unwrap();
        text
    });
    place.write("one.ttl", TURTLE);
    place.write("many.ttl", &many);
    build_entities(&place, &server);
    for path in ["emm/1.0/page/1.json", "emm/0.1/page/2.json", "iiif/page/2.json"] {
        assert!(place.path("site/set").join(path).is_file(), "{path}");
    }
    assert!(!place.path("site/set/iiif/page/3.json").exists());
    let feeds = ["emm/1.0", "emm/0.1", "iiif"];
    let url = |feed: &str| server.url(&format!("/set/{feed}/collection.json"));
    let copy = |feed: &str| place.path(&feed.replace('/', "-"));
    let follow = |feed: &str| {
        let target = format!("nquads:{}", copy(feed).display());
        sync(&url(feed), Path::new(&target), 0, &[])
    };
    let mut expected = descriptions(Syntax::Turtle, TURTLE);
    expected.append(&mut descriptions(Syntax::Turtle, &many));
    for feed in feeds {
        let summary = follow(feed);
        assert_eq!((&summary["mode"], &summary["created"]), (&"baseline".into(), &1_102.into()));
        assert_eq!(summary["warnings"], Value::Null, "{summary}");
        assert_eq!(copied(&copy(feed)), expected, "{feed}");
    }

    let changed = TURTLE.replace("London", "Paris").replace(":b a", ":c a");
    place.write("one.ttl", &changed);
    build_entities(&place, &server);
    let mut expected = descriptions(Syntax::Turtle, &changed);
    expected.append(&mut descriptions(Syntax::Turtle, &many));
    for feed in feeds {
        let before = server.seen().len();
        let summary = follow(feed);
        let counts = ["created", "updated", "deleted"].map(|name| summary[name].as_u64().unwrap());
        assert_eq!((&summary["mode"], counts), (&"incremental".into(), [1, 1, 1]), "{summary}");
        assert_eq!(copied(&copy(feed)), expected, "{feed}");
        let seen = server.seen();
        let mut seen = seen[before..].iter().map(Request::path);
        assert!(!seen.any(|path| path.ends_with("/page/1.json")), "what is known is not read");
        let target = format!("nquads:{}", copy(feed).display());
        let audit = run(abreast().args(["audit", &url(feed), &target, "--full"]));
        assert_eq!(audit.status.code(), Some(0), "{feed}");
    }
    let output = run(abreast().args(["explore", &url("emm/1.0")]));
    let tree = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(tree.contains("EMM 1.0 Entry Point") && tree.contains("2 pages"), "{tree}");
}

#[test]
fn manifests_of_a_static_site_are_followed() {
    let place = Place::new();
    let (server, folder) = (file_server(&site(&place)), place.path("manifests"));
    fs::create_dir_all(folder.join("maps")).unwrap();
    for number in 0..20 {
        fs::write(folder.join(format!("maps/{number}.json")), format!("[{number}]")).unwrap();
    }
    let config = place.path("abreast.toml");
    let text = format!(
        "base_url = \"{}\"\n[[set]]\nname = \"set\"\nfolder = {folder:?}\n\
         initial_changes = true\nobject_type = \"Manifest\"\n",
        server.url("/")
    );
    fs::write(&config, text).unwrap();
    let build = || {
        let mut command = abreast();
        command.args(["build", "--copy", "--config"]).arg(&config).arg("--out").arg(site(&place));
        let output = run(&mut command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    build();
    let copy = place.path("copy");
    let url = server.url("/set/iiif/collection.json");
    let follow = || sync(&url, &copy, 0, &[]);
    let assert_same = || {
        let of_copy = files(&copy).into_iter().filter(|(path, _)| !path.starts_with(".abreast"));
        let names = |path: &Path| path.file_name().unwrap().to_owned();
        let of_copy: BTreeMap<_, _> = of_copy.map(|(path, bytes)| (names(&path), bytes)).collect();
        let of_folder: BTreeMap<_, _> =
            files(&folder).into_iter().map(|(path, bytes)| (names(&path), bytes)).collect();
        assert_eq!(of_copy, of_folder);
    };
    assert_eq!(follow()["created"], 20);
    assert_same();
    fs::write(folder.join("maps/3.json"), "another").unwrap();
    fs::write(folder.join("maps/new.json"), "new").unwrap();
    fs::remove_file(folder.join("maps/4.json")).unwrap();
    build();
    let summary = follow();
    let counts = ["created", "updated", "deleted"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!((&summary["mode"], counts), (&"incremental".into(), [1, 1, 1]), "{summary}");
    assert_same();
    // A page is an address of its feed.
    let page = server.url("/set/iiif/page/1.json");
    let other = place.path("other");
    assert_eq!(sync(&page, &other, 0, &[])["created"], 20);
}

#[test]
fn feeds_of_a_static_site_break_no_rule_but_those_of_servers() {
    let place = Place::new();
    let server = file_server(&site(&place));
    let text = "@prefix : <http://id.example/> .\n:a a :Ship ; :name 'a' .\n:b a :Ship .\n";
    place.write("one.ttl", text);
    build_entities(&place, &server);
    place.write("one.ttl", &text.replace(":b a", ":c a").replace("'a'", "'A'"));
    build_entities(&place, &server);
    for (feed, cors) in
        [("emm/0.1", "FETCH-3.3-cors"), ("emm/1.0", "FETCH-3.3-cors"), ("iiif", "IIIF-4.1-cors")]
    {
        let url = server.url(&format!("/set/{feed}/collection.json"));
        let checks = ["--fail-on", "note", "--strict", "--sample", "all", "--format", "json"];
        let output = run(abreast().arg("validate").arg(&url).args(checks));
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<Value> =
            report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines[0]["entries"].as_u64().unwrap() > 0, "{feed}: {report}");
        let found: BTreeSet<&str> = lines.iter().filter_map(|line| line["rule"].as_str()).collect();
        assert_eq!(found, BTreeSet::from([cors, "HTTP-8.8.3-etag"]), "{feed}: {report}");
    }
}
