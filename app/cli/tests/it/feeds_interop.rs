//! Change feeds as an independent JSON-LD processor and an independent RDF library read them.

use crate::world::Source;
use abreast_testkit::{eventually, provided, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const JUDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/judge_activity_streams.py");
const CONTEXT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/rdf/contexts/activitystreams.jsonld");

const VERSIONS: [&str; 4] = [
    ":a a skos:Concept ; skos:prefLabel 'A'@en ; :part [ :of 'x' ; :next [ :of 1 ] ] . :b a skos:Concept .",
    ":a a skos:Concept ; skos:prefLabel 'Ä \"quoted\"'@en ; :part [ :of 'x' ; :next [ :of 2 ] ] . :c :p 1.5 .",
    ":a a skos:Concept, :Other ; :part [ :of 'x' ] , [ :of 'y' ] . :b :p _:n . _:n :p _:m . _:m :p _:n . :c :p 1.5 .",
    ":a a skos:Concept ; skos:prefLabel 'A\\nB' . :b :p _:n . _:n :p _:m, 'z' . _:m :p _:n . :d :p 'new' .",
];

#[test]
fn change_feeds_are_read_by_an_independent_processor() {
    let Some(python) = provided("pyld reads change feeds", "ABREAST_TEST_PYTHON") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let [data, out] = ["rdf", "out"].map(|name| temporary.path().join(name));
    fs::create_dir_all(&data).unwrap();
    fs::create_dir_all(&out).unwrap();
    let write = |version: &str| {
        let text = format!(
            "@prefix : <http://id.example/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n{version}"
        );
        fs::write(temporary.path().join("part"), text).unwrap();
        fs::rename(temporary.path().join("part"), data.join("one.ttl")).unwrap();
    };
    write(VERSIONS[0]);
    let source = Source::start(&data, 0, &["--origin", "rdf", "--versions", "100"]);
    let json = |path: &str| -> Value {
        let body = source.get(&format!("/{path}")).unwrap_or_else(|| panic!("{path}"));
        serde_json::from_slice(&body).unwrap()
    };
    let mut changes = 0;
    for version in VERSIONS {
        write(version);
        eventually("the change is published", || {
            let total = json("set/emm/1.0")["totalItems"].as_u64().unwrap();
            std::mem::replace(&mut changes, total) < total
        });
    }
    for profile in ["emm/0.1", "emm/1.0", "iiif"] {
        for path in [
            "",
            "/page/1",
            "/latest",
            "/latest/page/1",
            "/activity/1",
            "/patches/page/1",
            "/labels",
            "/newest/page/1",
        ] {
            let is_offered = profile != "iiif" || !path.contains(['b', 'w', 'h']);
            if is_offered {
                let document = json(&format!("set/{profile}{path}"));
                let name = format!("{profile}{path}.json").replace('/', "-");
                fs::write(out.join(name), document.to_string()).unwrap();
            }
        }
    }
    describe(&source, &out);
    let judged = run(Command::new(python).args([JUDGE, out.to_str().unwrap(), CONTEXT]));
    print!("{}", String::from_utf8_lossy(&judged.stdout));
    let errors = String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "{errors}");
}

/// The descriptions that there are now.
fn describe(source: &Source, out: &Path) {
    for name in ["a", "b", "c", "d"] {
        let path = format!("/set/r/!iri/http%3A/!/id.example/{name}?syntax=nt");
        if let Some(body) = source.get(&path) {
            fs::write(out.join(format!("{name}.nt")), body).unwrap();
        }
    }
}
