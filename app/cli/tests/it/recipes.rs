//! The shell commands of the recipes run as written, as those of tutorials ([`crate::documented`]).

use crate::authority_feeds;
use crate::documented::{Block, CURL, JQ, OXIGRAPH, PYTHON, Page, blocks, text_of, unused_ports};
use abreast_testkit::endpoint::Endpoint;
use abreast_testkit::http::{Request, Server, send, unused_address};
use abreast_testkit::{Running, eventually, provided};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Mutex;

#[test]
fn recipe_for_tables_works() {
    Page { programs: &[CURL, PYTHON], ..Page::of("docs/recipes/tables.md") }.check();
}

/// Records the documents of an index, and answers as OpenSearch and Solr do.
#[derive(Default)]
struct Index(Mutex<BTreeMap<String, Value>>);

impl Index {
    fn start() -> Server {
        let (opensearch, solr) = (Self::default(), Self::default());
        Server::new(move |request, stream| {
            let solr_path = request.path().strip_prefix("/solr/records/");
            let answer = match solr_path {
                Some(path) => solr.solr(path, request),
                None => opensearch.opensearch(request),
            };
            reply(stream, answer)
        })
    }

    fn put(&self, id: &str, document: Value) {
        self.0.lock().unwrap().insert(id.to_owned(), document);
    }

    fn delete(&self, id: &str) -> bool {
        self.0.lock().unwrap().remove(id).is_some()
    }

    fn delete_other_batches(&self, batch: u64) {
        self.0.lock().unwrap().retain(|_, document| document["batch"] == batch);
    }

    /// The documents that the query `field:word` finds.
    fn found(&self, request: &Request) -> Vec<(String, Value)> {
        let query = parameter(request, "q");
        let (field, word) = query.split_once(':').unwrap();
        let is_found =
            |document: &Value| document[field].as_str().is_some_and(|text| text.contains(word));
        let documents = self.0.lock().unwrap();
        let found = documents.iter().filter(|(_, document)| is_found(document));
        found.map(|(id, document)| (id.clone(), document.clone())).collect()
    }

    fn opensearch(&self, request: &Request) -> (&'static str, Value) {
        let path = request.path().strip_prefix("/records/").unwrap_or_default();
        if let Some(id) = path.strip_prefix("_doc/") {
            return match self.0.lock().unwrap().get(id) {
                Some(document) => (
                    "200 OK",
                    json!({"_index": "records", "_id": id, "_version": 1, "found": true, "_source": document}),
                ),
                None => ("404 Not Found", json!({"_index": "records", "_id": id, "found": false})),
            };
        }
        let body = request.text();
        match path {
            "_bulk" => {
                assert_eq!(request.header("content-type"), Some("application/x-ndjson"));
                assert!(body.ends_with('\n'), "a bulk request ends with a line end: {body}");
                let mut lines =
                    body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
                let mut items = Vec::new();
                while let Some(operation) = lines.next() {
                    if let Some(id) = operation["delete"]["_id"].as_str() {
                        let result = if self.delete(id) { "deleted" } else { "not_found" };
                        items.push(json!({"delete": {"_id": id, "result": result}}));
                    } else {
                        let id = operation["index"]["_id"].as_str().unwrap();
                        self.put(id, lines.next().unwrap());
                        items.push(json!({"index": {"_id": id, "status": 201}}));
                    }
                }
                ("200 OK", json!({"took": 1, "errors": false, "items": items}))
            }
            "_delete_by_query" => {
                let query: Value = serde_json::from_str(&body).unwrap();
                let batch = &query["query"]["bool"]["must_not"][0]["term"]["batch"];
                self.delete_other_batches(batch.as_u64().unwrap());
                ("200 OK", json!({"took": 1, "failures": []}))
            }
            "_search" => {
                let hits = self.found(request).into_iter();
                let hits: Vec<_> =
                    hits.map(|(id, document)| json!({"_id": id, "_source": document})).collect();
                ("200 OK", json!({"hits": {"total": {"value": hits.len()}, "hits": hits}}))
            }
            _ => ("400 Bad Request", json!({"error": request.line()})),
        }
    }

    fn solr(&self, path: &str, request: &Request) -> (&'static str, Value) {
        match path {
            "get" => {
                let id = parameter(request, "id");
                ("200 OK", json!({"doc": self.0.lock().unwrap().get(&id)}))
            }
            "update" => {
                assert_eq!(request.header("content-type"), Some("application/json"));
                let command: Value = serde_json::from_slice(&request.body).unwrap();
                if let Some(documents) = command.as_array() {
                    for document in documents {
                        self.put(document["id"].as_str().unwrap(), document.clone());
                    }
                } else if let Some(ids) = command["delete"].as_array() {
                    for id in ids {
                        self.delete(id.as_str().unwrap());
                    }
                } else {
                    let query = command["delete"]["query"].as_str().unwrap();
                    let batch = query.strip_prefix("*:* -batch:").unwrap();
                    self.delete_other_batches(batch.parse().unwrap());
                }
                ("200 OK", json!({"responseHeader": {"status": 0, "QTime": 1}}))
            }
            "select" => {
                let found: Vec<_> =
                    self.found(request).into_iter().map(|(_, document)| document).collect();
                ("200 OK", json!({"response": {"numFound": found.len(), "docs": found}}))
            }
            _ => ("400 Bad Request", json!({"error": request.line()})),
        }
    }
}

fn parameter(request: &Request, name: &str) -> String {
    let query = request.target().split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).unwrap().1.to_owned()
}

fn reply(stream: &mut TcpStream, (status, body): (&str, Value)) -> bool {
    send(stream, status, "Content-Type: application/json\r\n", body.to_string().as_bytes())
}

#[test]
fn recipe_for_search_indexes_works() {
    let index = Index::start();
    let port = index.address().port();
    Page {
        programs: &[CURL, JQ],
        ports: &[("9200", port), ("8983", port)],
        ..Page::of("docs/recipes/search.md")
    }
    .check();
}

/// Programs with the arguments of VuFind: one imports a file, the other deletes the identifiers in a list. Instead of
/// MARC, a file has a title. The index is at `$INDEX`.
const VUFIND: [(&str, &str); 2] = [
    (
        "import-marc.sh",
        r#"#!/bin/sh
set -eu
[ $# = 1 ]
id=$(basename "$1" .mrc)
curl -sS --fail "$INDEX/update" -H 'Content-Type: application/json' --data-binary "[{\"id\": \"$id\", \"title\": \"$(cat "$1")\"}]"
"#,
    ),
    (
        "php",
        r#"#!/bin/sh
set -eu
[ "$1" = "$VUFIND_HOME/util/deletes.php" ] && [ "$3" = flat ]
[ ! -f fails ] || exit 1
curl -sS --fail "$INDEX/update" -H 'Content-Type: application/json' --data-binary "$(jq -Rn '{delete: [inputs]}' "$2")"
"#,
    ),
];

/// Runs the script of the page on a copy that changes.
const VUFIND_SESSION: &str = r#"
found() { curl -sS "$INDEX/select?q=title:Record" | jq -r '.response.docs[].title'; }
mkdir records
for n in 1 2 3; do echo "Record $n" > records/$n.mrc; done
sleep 1.1
abreast serve records > serve.log 2>&1 &
curl -sS --retry 10 --retry-connrefused http://127.0.0.1:8080/readyz > ready
abreast sync http://127.0.0.1:8080/ copy --on-change ./vufind.sh > out
found
echo "Record 2, corrected" > records/2.mrc
rm records/3.mrc
abreast log records --server http://127.0.0.1:8080/ --follow --limit 2 > recorded
touch fails
if abreast sync http://127.0.0.1:8080/ copy --on-change ./vufind.sh > out; then echo "no failure"; fi
found
rm fails
abreast sync http://127.0.0.1:8080/ copy --on-change ./vufind.sh > out
found
"#;

const VUFIND_FOUND: &str = "Record 1\nRecord 2\nRecord 3\nRecord 1\nRecord 2, corrected\nRecord 3\nRecord 1\nRecord 2, corrected\n";

#[test]
fn script_of_the_recipe_for_vufind_works() {
    let index = Index::start();
    let page = Page { programs: &[CURL, JQ], ..Page::of("docs/recipes/search.md") };
    let Some(tools) = page.tools() else { return };
    let written: Vec<_> = blocks(&text_of(page.path), Some("VuFind"));
    let mut programs = format!("export VUFIND_HOME=$BIN INDEX={}\n", index.url("/solr/records"));
    for (name, program) in VUFIND {
        let _ = write!(
            programs,
            "cat > \"$BIN/{name}\" <<'END'\n{program}END\nchmod +x \"$BIN/{name}\"\n"
        );
    }
    let ports = unused_ports();
    let session = page.with_ports(VUFIND_SESSION, ports);
    let block = Block { output: Some(VUFIND_FOUND.to_owned()), ..Block::default() };
    page.run(&[block], &tools, ports[0], |_, output| {
        let file = output.join("0").display().to_string();
        let write = &written[0].commands;
        format!("set -eu\nexec >'{file}.out' 2>'{file}.err'\n{programs}{write}{session}")
    });
}

#[test]
fn recipe_for_static_feeds_works() {
    let caddy = ("caddy", "ABREAST_TEST_CADDY");
    Page { programs: &[CURL, caddy], ..Page::of("docs/recipes/static-feed.md") }.check();
}

/// A cluster of Kafka in a process of Python, which prints its port.
const CLUSTER: &str = r#"
from confluent_kafka import Producer
cluster = Producer({"test.mock.num.brokers": 1, "log_level": 0})
print(next(iter(cluster.list_topics(timeout=30).brokers.values())).port, flush=True)
while True:
    cluster.poll(1)
"#;

#[test]
fn recipe_for_queues_works() {
    let Some(python) = provided("recipe_for_queues_works", PYTHON.1) else { return };
    let mut cluster = Command::new(python);
    let mut cluster =
        Running(cluster.args(["-c", CLUSTER]).stdout(Stdio::piped()).spawn().unwrap());
    let mut port = String::new();
    BufReader::new(cluster.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let programs =
        [("nats-server", "ABREAST_TEST_NATS"), ("kcat", "ABREAST_TEST_KCAT"), CURL, JQ, PYTHON];
    Page {
        programs: &programs,
        ports: &[("9092", port.trim().parse().unwrap())],
        ..Page::of("docs/recipes/queues.md")
    }
    .check();
}

#[test]
fn recipe_for_triple_stores_works() {
    let test = "recipe_for_triple_stores_works";
    let Some(program) = provided(test, OXIGRAPH.1) else { return };
    let oxigraph = unused_address();
    let mut server = Command::new(program);
    server.args(["serve", "--bind", &oxigraph.to_string()]).stderr(Stdio::null());
    let _server = Running(server.spawn().unwrap());
    eventually("Oxigraph listens", || TcpStream::connect(oxigraph).is_ok());
    let fuseki = Endpoint::start();
    let (congress, getty, libris) =
        (authority_feeds::congress(), authority_feeds::getty(), authority_feeds::libris());
    Page {
        programs: &[CURL, JQ],
        ports: &[
            ("7878", oxigraph.port()),
            ("3030", fuseki.port()),
            ("8082", congress.address().port()),
            ("8083", getty.address().port()),
            ("8084", libris.address().port()),
        ],
        ..Page::of("docs/recipes/triple-stores.md")
    }
    .check();
    // Without curl or jq, the page does not run, and the list is empty. The login is `loader:secret`.
    let heads = fuseki.heads();
    assert!(heads.iter().all(|head| head.contains("Basic bG9hZGVyOnNlY3JldA==")), "{heads:?}");
}

#[test]
fn recipe_for_jobs_works() {
    Page { programs: &[CURL, JQ, PYTHON], ..Page::of("docs/recipes/jobs.md") }.check();
}
