//! Real data sets of RDF as entities, over SDShare into files of N-Quads: after each release the
//! copy is the source, as another library judges it.

use crate::world::{Source, abreast};
use abreast_testkit::{provided, run};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest wait for a copy to be a release.
const PATIENCE: Duration = Duration::from_secs(600);

/// Whether the graphs of two groups of files are isomorphic; blank nodes belong to their file.
const JUDGE: &str = r#"
import collections
import sys
import pyoxigraph as ox

FORMATS = {"nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS, "ttl": ox.RdfFormat.TURTLE}
# Blank nodes of several entities, or of none, are published with an IRI [rdf11-concepts §3.5].
SKOLEM = "https://id.example/.well-known/genid/"

# The statements without blank nodes, and each group of connected blank nodes with its statements
# in a canonical form: two graphs are isomorphic if these are the same.
def parts(paths):
    ground, of_node = set(), collections.defaultdict(set)
    for number, path in enumerate(paths):
        def own(term):
            if isinstance(term, ox.NamedNode) and term.value.startswith(SKOLEM):
                return ox.BlankNode("s" + term.value[len(SKOLEM):].replace("-", "x"))
            if isinstance(term, ox.BlankNode):
                return ox.BlankNode(f"f{number}x{term.value}")
            return term
        format = FORMATS[path.rsplit(".", 1)[1]]
        for quad in ox.parse(path=path, format=format, base_iri="http://base.example/"):
            statement = (own(quad.subject), quad.predicate, own(quad.object))
            nodes = [term for term in statement if isinstance(term, ox.BlankNode)]
            for node in nodes:
                of_node[node].add(statement)
            if not nodes:
                ground.add(statement)
    groups, seen = collections.Counter(), set()
    for first in of_node:
        waiting, group = [first], ox.Dataset()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            for statement in of_node[node]:
                group.add(ox.Quad(*statement))
                waiting += [term for term in statement if isinstance(term, ox.BlankNode)]
        if len(group):
            group.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
            groups["\n".join(sorted(str(quad) for quad in group))] += 1
    return ground, groups

split = sys.argv.index("--")
source, copy = parts(sys.argv[1:split]), parts(sys.argv[split + 1:])
lost, added = source[0] - copy[0], copy[0] - source[0]
lost_groups, added_groups = source[1] - copy[1], copy[1] - source[1]
print(len(source[0]), "statements;", sum(source[1].values()), "groups of blank nodes")
print("lost:", len(lost), lost_groups.total(), "added:", len(added), added_groups.total())
print(*list(lost)[:3], *list(added)[:3], *list(lost_groups)[:1], *list(added_groups)[:1], sep="\n")
sys.exit(1 if lost or added or lost_groups or added_groups else 0)
"#;

/// Publishes one release after the other, and follows them. Each has its files' names and texts.
fn follow(python: &Path, releases: &[Vec<(String, String)>]) {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("data"), temporary.path().join("copy"));
    fs::create_dir(&original).unwrap();
    // Releases take away more than the guards of both sides let pass.
    let config = temporary.path().join("abreast.toml");
    let text = format!(
        "data = \"{}\"\n[[set]]\nname = \"set\"\norigin = \"rdf\"\nfolder = \"{}\"\nhold_deletions = \"0s\"\n\
         skolemize = \"https://id.example\"\n",
        temporary.path().join("store").display(),
        original.display()
    );
    fs::write(&config, text).unwrap();
    let source = Source::start_config(config.to_str().unwrap());
    let (overview, target) =
        (format!("{}sdshare", source.url()), format!("nquads:{}", copy.display()));
    let with_ending = |folder: &Path, endings: &[&str]| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let has = |path: &PathBuf| {
            path.extension().is_some_and(|end| endings.iter().any(|ending| end == *ending))
        };
        paths.filter(has).collect()
    };
    for release in releases {
        for old in with_ending(&original, &["nt", "ttl"]) {
            fs::remove_file(old).unwrap();
        }
        for (name, text) in release {
            let aside = temporary.path().join("aside");
            fs::write(&aside, text).unwrap();
            fs::rename(aside, original.join(name)).unwrap();
        }
        let attempt = || -> Result<(), String> {
            let mut sync = abreast();
            sync.args(["sync", &overview, &target, "--quiet", "--max-delete", "100%"]);
            let output = run(&mut sync);
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
            let mut judge = Command::new(python);
            judge.args(["-c", JUDGE]).args(with_ending(&original, &["nt", "ttl"])).arg("--");
            let judged = run(judge.args(with_ending(&copy, &["nq"])));
            let text = String::from_utf8_lossy(&judged.stdout).into_owned();
            let errors = String::from_utf8_lossy(&judged.stderr);
            if judged.status.success() { Ok(()) } else { Err(text + &errors) }
        };
        // The judge alone takes seconds, longer where other tests run beside it.
        let begun = Instant::now();
        while let Err(why) = attempt() {
            assert!(begun.elapsed() < PATIENCE, "{why}");
        }
    }
    let audit = run(abreast().args(["audit", &overview, &target, "--full"]));
    assert_eq!(audit.status.code(), Some(0), "{}", String::from_utf8_lossy(&audit.stdout));
}

#[test]
fn five_releases_of_brick_arrive_as_entities() {
    let name = "Brick as entities";
    let Some(python) = provided(name, "ABREAST_TEST_PYTHON") else { return };
    let Some(folder) = provided(name, "ABREAST_TEST_BRICK_DIR") else { return };
    let releases = ["1.1", "1.2", "1.3", "1.4", "1.5"].map(|release| {
        let text = fs::read_to_string(folder.join(release).join("Brick.ttl")).unwrap();
        // One of its IRIs is relative.
        let text = format!("@base <https://brickschema.org/schema/Brick> .\n{text}");
        vec![("Brick.ttl".to_owned(), text)]
    });
    follow(&python, &releases);
}

#[test]
fn two_releases_of_the_bioregistry_arrive_as_entities() {
    let name = "Bioregistry as entities";
    let Some(python) = provided(name, "ABREAST_TEST_PYTHON") else { return };
    let Some(old) = provided(name, "ABREAST_TEST_BIOREGISTRY_OLD_DIR") else { return };
    let Some(new) = provided(name, "ABREAST_TEST_BIOREGISTRY_NEW_DIR") else { return };
    let release = |folder: &Path| {
        let text = fs::read_to_string(folder.join("bioregistry.json")).unwrap();
        vec![("bioregistry.nt".to_owned(), bioregistry(&serde_json::from_str(&text).unwrap()))]
    };
    follow(&python, &[release(&old), release(&new), release(&old)]);
}

#[test]
fn the_iso_codes_arrive_as_concepts() {
    let name = "iso-codes as concepts";
    let Some(python) = provided(name, "ABREAST_TEST_PYTHON") else { return };
    let Some(folder) = provided(name, "ABREAST_TEST_ISO_CODES_DIR") else { return };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder.join("iso-codes/json")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with("schema") {
            let text = fs::read_to_string(entry.path()).unwrap();
            files.push((
                name.replace("json", "ttl"),
                concepts(&serde_json::from_str(&text).unwrap()),
            ));
        }
    }
    let few = files[..files.len() / 2].to_vec();
    follow(&python, &[few, files]);
}

/// The Bioregistry as N-Triples: a resource for each prefix, with a property for each key; an
/// object of JSON is a blank node, a list several values.
fn bioregistry(records: &Value) -> String {
    fn put(out: &mut String, blanks: &mut usize, subject: &str, key: &str, value: &Value) {
        let predicate = format!("<https://bioregistry.example/schema#{}>", encoded(key));
        match value {
            Value::Array(values) => {
                for value in values {
                    put(out, blanks, subject, key, value);
                }
            }
            Value::Object(fields) => {
                *blanks += 1;
                let node = format!("_:b{blanks}");
                writeln!(out, "{subject} {predicate} {node} .").unwrap();
                for (key, value) in fields {
                    put(out, blanks, &node, key, value);
                }
            }
            Value::String(text) => {
                writeln!(out, "{subject} {predicate} {} .", literal(text)).unwrap();
            }
            other => writeln!(out, "{subject} {predicate} \"{other}\" .").unwrap(),
        }
    }
    let (mut out, mut blanks) = (String::new(), 0);
    for (prefix, fields) in records.as_object().unwrap() {
        let subject = format!("<https://bioregistry.example/registry/{}>", encoded(prefix));
        for (key, value) in fields.as_object().unwrap() {
            put(&mut out, &mut blanks, &subject, key, value);
        }
    }
    out
}

/// Codes as SKOS: a scheme for each list, a concept for each code, names as labels.
fn concepts(lists: &Value) -> String {
    const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";
    let mut out = format!("@prefix skos: <{SKOS}> .\n");
    for (list, codes) in lists.as_object().unwrap() {
        let scheme = format!("https://iso.example/{list}");
        writeln!(out, "<{scheme}> a skos:ConceptScheme .").unwrap();
        for code in codes.as_array().unwrap() {
            let keys = ["alpha_3", "code", "alpha_4", "alpha_2"];
            let name = keys.iter().find_map(|key| code[*key].as_str()).unwrap();
            let concept = format!("<{scheme}/{}>", encoded(name));
            writeln!(out, "{concept} a skos:Concept ; skos:inScheme <{scheme}> .").unwrap();
            for (key, value) in code.as_object().unwrap() {
                let text = literal(value.as_str().unwrap());
                match key.as_str() {
                    "name" => writeln!(out, "{concept} skos:prefLabel {text}@en ."),
                    "common_name" | "official_name" => {
                        writeln!(out, "{concept} skos:altLabel {text}@en .")
                    }
                    _ => writeln!(out, "{concept} <https://iso.example/schema#{key}> {text} ."),
                }
                .unwrap();
            }
        }
    }
    out
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    abreast_webtypes::encode_segment(text.as_bytes(), &mut out);
    out
}

fn literal(text: &str) -> String {
    oxrdf::Literal::new_simple_literal(text).to_string()
}
