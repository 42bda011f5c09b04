//! A SPARQL 1.1 endpoint on the loopback interface.

use crate::http::{Request, Server, send};
use oxigraph::model::Term;
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use std::collections::VecDeque;
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
    faults: Arc<Mutex<Faults>>,
    http: Arc<Server>,
}

impl Endpoint {
    /// An endpoint on a port of its own.
    pub fn start() -> Self {
        let (store, faults) = (Store::new().unwrap(), Arc::<Mutex<Faults>>::default());
        let (own, own_faults) = (store.clone(), Arc::clone(&faults));
        let http = Server::new(move |request, stream| answer(&own, &own_faults, request, stream));
        Self { store, faults, http: Arc::new(http) }
    }

    /// The address for updates.
    pub fn url(&self) -> String {
        self.http.url("/update")
    }

    /// The address for queries.
    pub fn query_url(&self) -> String {
        self.http.url("/query")
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

fn answer(
    store: &Store,
    faults: &Mutex<Faults>,
    request: &Request,
    stream: &mut TcpStream,
) -> bool {
    let text = request.text();
    let is_query = request.path() == "/query";
    if !is_query && request.path() != "/update" {
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
        return answer_query(store, &text, fault, stream);
    }
    match SparqlEvaluator::new().parse_update(&text) {
        Err(error) => send(stream, "400 Bad Request", "", error.to_string().as_bytes()),
        Ok(update) => {
            update.on_store(store).execute().unwrap();
            fault.is_none() && send(stream, "204 No Content", "", b"")
        }
    }
}

fn answer_query(store: &Store, text: &str, fault: Option<Fault>, stream: &mut TcpStream) -> bool {
    let query = match SparqlEvaluator::new().parse_query(text) {
        Ok(query) => query,
        Err(error) => {
            return send(stream, "400 Bad Request", "", error.to_string().as_bytes());
        }
    };
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
