//! A SPARQL 1.1 endpoint on the loopback interface.

use crate::servers::http::{Request, Server, send};
use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::{GraphName, NamedNode, Term, Triple};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use percent_encoding::percent_decode_str;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// What happens to a request instead of being carried out.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The answer has this status, and nothing is done.
    Status(u16),
    /// It is carried out, and the connection ends without an answer.
    Unanswered,
    /// The answer to a query ends after so many solutions or statements, as if it were complete.
    Rows(usize),
}

/// What is asked first about the text of each request.
type Judge = Box<dyn Fn(&str) -> Option<Fault> + Send>;

#[derive(Default)]
struct Faults {
    /// Of the next updates.
    next: VecDeque<Fault>,
    update: Option<Judge>,
    query: Option<Judge>,
}

/// An endpoint with an empty store.
#[derive(Clone)]
pub struct Endpoint {
    /// Its statements.
    pub store: Store,
    /// The last body that was pushed of each resource; none after an empty one.
    pub pushed: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    faults: Arc<Mutex<Faults>>,
    default: Arc<Mutex<DefaultGraph>>,
    http: Arc<Server>,
}

/// Which statements queries see in the default graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultGraph {
    /// Its own.
    #[default]
    Own,
    /// Its own and those of all named graphs, as in RDF4J.
    Union,
    /// Those of all named graphs, as in Jena with `unionDefaultGraph`.
    NamedOnly,
}

impl Endpoint {
    /// An endpoint on a port of its own.
    pub fn start() -> Self {
        let (store, faults) = (Store::new().unwrap(), Arc::<Mutex<Faults>>::default());
        let (own, own_faults) = (store.clone(), Arc::clone(&faults));
        let pushed = Arc::<Mutex<BTreeMap<_, _>>>::default();
        let own_pushed = Arc::clone(&pushed);
        let default = Arc::<Mutex<DefaultGraph>>::default();
        let own_default = Arc::clone(&default);
        let http = Server::new(move |request, stream| match request.path() {
            "/data" => answer_graph(&own, &own_faults, request, stream),
            "/push" => answer_push(&own_pushed, &own_faults, request, stream),
            _ => answer(&own, (&own_faults, *own_default.lock().unwrap()), request, stream),
        });
        Self { store, pushed, faults, default, http: Arc::new(http) }
    }

    /// Queries see these statements in the default graph from now on.
    pub fn show_as_default(&self, default: DefaultGraph) {
        *self.default.lock().unwrap() = default;
    }

    /// The port of all addresses.
    pub fn port(&self) -> u16 {
        self.http.address().port()
    }

    /// The address for updates.
    pub fn url(&self) -> String {
        self.http.url("/update")
    }

    /// The address for queries.
    pub fn query_url(&self) -> String {
        self.http.url("/query")
    }

    /// The address of its graphs.
    pub fn graph_store_url(&self) -> String {
        self.http.url("/data")
    }

    /// The address for SDShare Push.
    pub fn push_url(&self) -> String {
        self.http.url("/push")
    }

    /// The next updates fail like this.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().next.extend(faults);
    }

    /// Updates fail as their text says.
    pub fn judge(&self, judge: impl Fn(&str) -> Option<Fault> + Send + 'static) {
        self.faults.lock().unwrap().update = Some(Box::new(judge));
    }

    /// Queries fail as their text says.
    pub fn judge_queries(&self, judge: impl Fn(&str) -> Option<Fault> + Send + 'static) {
        self.faults.lock().unwrap().query = Some(Box::new(judge));
    }

    /// The requests so far, without their bodies.
    pub fn heads(&self) -> Vec<String> {
        self.http.seen().into_iter().map(|request| request.head).collect()
    }

    /// Carries an update out.
    pub fn update(&self, text: &str) {
        SparqlEvaluator::new().parse_update(text).unwrap().on_store(&self.store).execute().unwrap();
    }
}

fn parameter(request: &Request, name: &str) -> String {
    let (_, query) = request.target().split_once('?').unwrap();
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    percent_decode_str(value.unwrap()).decode_utf8().unwrap().into_owned()
}

/// What is to happen to the next update, if anything.
fn next_fault(faults: &Mutex<Faults>, text: &str) -> Option<Fault> {
    let mut faults = faults.lock().unwrap();
    let judged = faults.update.as_ref().and_then(|judge| judge(text));
    judged.or_else(|| faults.next.pop_front())
}

/// Graph Store Protocol: GET, PUT and DELETE of a named graph.
fn answer_graph(
    store: &Store,
    faults: &Mutex<Faults>,
    request: &Request,
    stream: &mut TcpStream,
) -> bool {
    let graph = NamedNode::new(parameter(request, "graph")).unwrap();
    let has_graph = store.contains_named_graph(&graph).unwrap();
    if request.method() == "GET" {
        let quads = store.quads_for_pattern(None, None, None, Some(graph.as_ref().into()));
        let mut body = Vec::new();
        for quad in quads {
            writeln!(body, "{} .", Triple::from(quad.unwrap())).unwrap();
        }
        let status = if has_graph { "200 OK" } else { "404 Not Found" };
        return send(stream, status, "", &body);
    }
    let fault = next_fault(faults, &request.text());
    if let Some(Fault::Status(status)) = fault {
        return send(stream, &format!("{status} X"), "", b"no\x1bt now");
    }
    store.remove_named_graph(&graph).unwrap();
    if request.method() == "PUT" {
        assert_eq!(request.header("content-type"), Some("application/n-triples"));
        let parser = RdfParser::from_format(RdfFormat::NTriples).with_default_graph(graph);
        store.load_from_slice(parser, &request.body).unwrap();
    } else if !has_graph {
        return send(stream, "404 Not Found", "", b"");
    }
    fault.is_none() && send(stream, "204 No Content", "", b"")
}

/// SDShare Push.
fn answer_push(
    pushed: &Mutex<BTreeMap<String, Vec<u8>>>,
    faults: &Mutex<Faults>,
    request: &Request,
    stream: &mut TcpStream,
) -> bool {
    assert_eq!(request.method(), "POST");
    assert_eq!(request.header("content-type"), Some("application/n-triples"));
    let fault = next_fault(faults, &request.text());
    if let Some(Fault::Status(status)) = fault {
        return send(stream, &format!("{status} X"), "", b"no\x1bt now");
    }
    let (resource, mut pushed) = (parameter(request, "resource"), pushed.lock().unwrap());
    if request.body.is_empty() {
        pushed.remove(&resource);
    } else {
        pushed.insert(resource, request.body.clone());
    }
    fault.is_none() && send(stream, "200 OK", "", b"")
}

fn answer(
    store: &Store,
    (faults, default): (&Mutex<Faults>, DefaultGraph),
    request: &Request,
    stream: &mut TcpStream,
) -> bool {
    let text = request.text();
    // Fuseki has a dataset in the path: `/DATASET/query`.
    let is_query = request.path().ends_with("/query");
    if !is_query && !request.path().ends_with("/update") {
        return send(stream, "404 Not Found", "", b"");
    }
    let kind = if is_query { "application/sparql-query" } else { "application/sparql-update" };
    assert_eq!(request.header("content-type"), Some(kind));
    let fault = {
        let mut faults = faults.lock().unwrap();
        let judge = if is_query { &faults.query } else { &faults.update };
        let judged = judge.as_ref().and_then(|judge| judge(&text));
        judged.or_else(|| if is_query { None } else { faults.next.pop_front() })
    };
    if let Some(Fault::Status(status)) = fault {
        return send(stream, &format!("{status} X"), "", b"no\x1bt now");
    }
    if is_query {
        return answer_query((store, default), &text, fault, stream);
    }
    match SparqlEvaluator::new().parse_update(&text) {
        Err(error) => send(stream, "400 Bad Request", "", error.to_string().as_bytes()),
        Ok(update) => {
            update.on_store(store).execute().unwrap();
            fault.is_none() && send(stream, "204 No Content", "", b"")
        }
    }
}

fn answer_query(
    (store, default): (&Store, DefaultGraph),
    text: &str,
    fault: Option<Fault>,
    stream: &mut TcpStream,
) -> bool {
    let mut query = match SparqlEvaluator::new().parse_query(text) {
        Ok(query) => query,
        Err(error) => {
            return send(stream, "400 Bad Request", "", error.to_string().as_bytes());
        }
    };
    match default {
        DefaultGraph::Own => {}
        DefaultGraph::Union => query.dataset_mut().set_default_graph_as_union(),
        DefaultGraph::NamedOnly => {
            let graphs = store.named_graphs().map(|graph| GraphName::from(graph.unwrap()));
            query.dataset_mut().set_default_graph(graphs.collect());
        }
    }
    let most = if let Some(Fault::Rows(most)) = fault { most } else { usize::MAX };
    let json = "application/sparql-results+json";
    let (kind, body) = match query.on_store(store).execute().unwrap() {
        QueryResults::Boolean(is_so) => {
            (json, serde_json::json!({"head": {}, "boolean": is_so}).to_string())
        }
        QueryResults::Solutions(solutions) => {
            let bindings: Vec<_> = solutions
                .take(most)
                .map(|solution| {
                    let solution = solution.unwrap();
                    let bound = solution.iter().map(|(name, term)| {
                        let (kind, value) = match term {
                            Term::NamedNode(node) => ("uri", node.as_str()),
                            Term::BlankNode(node) => ("bnode", node.as_str()),
                            Term::Literal(literal) => ("literal", literal.value()),
                        };
                        let value = serde_json::json!({"type": kind, "value": value});
                        (name.as_str().to_owned(), value)
                    });
                    serde_json::Value::Object(bound.collect())
                })
                .collect();
            let body = serde_json::json!({"head": {}, "results": {"bindings": bindings}});
            (json, body.to_string())
        }
        QueryResults::Graph(triples) => {
            let lines = triples.take(most).map(|triple| format!("{} .\n", triple.unwrap()));
            ("application/n-triples", lines.collect())
        }
    };
    if matches!(fault, Some(Fault::Unanswered)) {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len() + 1
        );
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(body.as_bytes());
        return false;
    }
    send(stream, "200 OK", &format!("Content-Type: {kind}\r\n"), body.as_bytes())
}
