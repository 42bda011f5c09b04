//! A SPARQL 1.1 endpoint on the loopback interface.

use abreast_testkit::http::{Request, Server, send};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// What happens to an update instead of being carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The answer has this status, and nothing is done.
    Status(u16),
    /// It is carried out, and the connection ends without an answer.
    Unanswered,
}

/// What is asked first about the text of each update.
type Judge = Box<dyn Fn(&str) -> Option<Fault> + Send>;

#[derive(Default)]
struct Faults {
    /// Of the next updates.
    next: VecDeque<Fault>,
    judge: Option<Judge>,
}

/// An endpoint with an empty store.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) store: Store,
    faults: Arc<Mutex<Faults>>,
    http: Arc<Server>,
}

impl Endpoint {
    pub(crate) fn start() -> Self {
        let (store, faults) = (Store::new().unwrap(), Arc::<Mutex<Faults>>::default());
        let (own, own_faults) = (store.clone(), Arc::clone(&faults));
        let http = Server::new(move |request, stream| answer(&own, &own_faults, request, stream));
        Self { store, faults, http: Arc::new(http) }
    }

    /// The address for updates.
    pub(crate) fn url(&self) -> String {
        self.http.url("/update")
    }

    /// The next updates fail like this.
    pub(crate) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().next.extend(faults);
    }

    /// Updates fail as their text says.
    pub(crate) fn judge(&self, judge: impl Fn(&str) -> Option<Fault> + Send + 'static) {
        self.faults.lock().unwrap().judge = Some(Box::new(judge));
    }

    /// The requests so far, without their bodies.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.http.seen().into_iter().map(|request| request.head).collect()
    }

    pub(crate) fn update(&self, text: &str) {
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
    if request.path() == "/query" {
        return answer_query(store, &text, stream);
    }
    if request.path() != "/update" {
        return send(stream, "404 Not Found", "", b"");
    }
    assert_eq!(request.header("content-type"), Some("application/sparql-update"));
    let fault = {
        let mut faults = faults.lock().unwrap();
        let judged = faults.judge.as_ref().and_then(|judge| judge(&text));
        judged.or_else(|| faults.next.pop_front())
    };
    if let Some(Fault::Status(status)) = fault {
        return send(stream, &format!("{status} X"), "", b"no\x1bt now");
    }
    match SparqlEvaluator::new().parse_update(&text) {
        Err(error) => send(stream, "400 Bad Request", "", error.to_string().as_bytes()),
        Ok(update) => {
            update.on_store(store).execute().unwrap();
            fault.is_none() && send(stream, "204 No Content", "", b"")
        }
    }
}

fn answer_query(store: &Store, text: &str, stream: &mut TcpStream) -> bool {
    let query = match SparqlEvaluator::new().parse_query(text) {
        Ok(query) => query,
        Err(error) => {
            return send(stream, "400 Bad Request", "", error.to_string().as_bytes());
        }
    };
    let body = match query.on_store(store).execute().unwrap() {
        QueryResults::Boolean(is_so) => {
            serde_json::json!({"head": {}, "boolean": is_so}).to_string()
        }
        QueryResults::Solutions(solutions) => {
            let bindings: Vec<_> = solutions
                .map(|solution| {
                    let solution = solution.unwrap();
                    let Some(oxigraph::model::Term::NamedNode(node)) = solution.get("r") else {
                        panic!("{text}")
                    };
                    serde_json::json!({"r": {"type": "uri", "value": node.as_str()}})
                })
                .collect();
            serde_json::json!({"head": {"vars": ["r"]}, "results": {"bindings": bindings}})
                .to_string()
        }
        QueryResults::Graph(triples) => {
            triples.map(|triple| format!("{} .\n", triple.unwrap())).collect()
        }
    };
    send(stream, "200 OK", "", body.as_bytes())
}
