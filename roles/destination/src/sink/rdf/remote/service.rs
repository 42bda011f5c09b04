//! The services that store statements, and the meaning of their errors.

use super::store::{Database, Place};
use crate::report::error::{Error, ExitCode};
use crate::report::sinks::{Graph, GraphStoreOptions, OxigraphOptions, PushOptions, SparqlOptions};
use crate::sink::rdf::remote::refusal::Refusal;
use abreast_net::{Client, Shared, StatusCode};
use abreast_store::mirror::Mirror;
use std::path::Path;
use std::time::Duration;

/// Key of the service in the database.
const STORE: &str = "sink-store";

/// The protocol of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// SPARQL 1.1 Update and Query.
    Endpoint,
    /// SPARQL 1.1 Graph Store HTTP Protocol.
    GraphStore,
    /// SDShare Push.
    Receiver,
    /// A store of Oxigraph in this process.
    Store,
}

/// A service, according to the user's options.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(super) service: Service,
    pub(super) url: String,
    /// The address for queries of an endpoint; for other services equal to `url`.
    pub(super) query_url: String,
    pub(super) graph: Graph,
    /// The place of the store, if the service is a store.
    store: Option<Place>,
}

/// Options of a kind of copy that is in such a service.
pub(super) trait RemoteOptions {
    /// The service of the copy with its state in this folder.
    fn remote(&self, folder: &Path) -> Remote;
}

impl RemoteOptions for SparqlOptions {
    fn remote(&self, _folder: &Path) -> Remote {
        let query_url = query_url(self);
        Remote { query_url, ..Remote::at(Service::Endpoint, &self.url, self.graph.clone()) }
    }
}

impl RemoteOptions for GraphStoreOptions {
    fn remote(&self, _folder: &Path) -> Remote {
        Remote::at(Service::GraphStore, &self.url, Graph::OfResource)
    }
}

impl RemoteOptions for PushOptions {
    fn remote(&self, _folder: &Path) -> Remote {
        let graph = self.graph.clone().map_or(Graph::Default, Graph::Named);
        Remote::at(Service::Receiver, &self.url, graph)
    }
}

impl RemoteOptions for OxigraphOptions {
    fn remote(&self, folder: &Path) -> Remote {
        let store = Some(Place::new(folder, self));
        Remote { store, ..Remote::at(Service::Store, "", self.graph.clone()) }
    }
}

impl Remote {
    fn at(service: Service, url: &str, graph: Graph) -> Self {
        let url = url.to_owned();
        Self { service, query_url: url.clone(), url, graph, store: None }
    }

    /// A client for the service. Limits for requests to the Source do not apply to the service.
    pub(super) fn client(net: abreast_net::Options) -> Client {
        let own = abreast_net::Options {
            bandwidth: None,
            budget: None,
            request_interval: Duration::ZERO,
            ..net
        };
        Client::new(Shared::new(own))
    }

    /// Whether the store of an existing copy is missing.
    pub(super) fn lacks_store(&self, mirror: &Mirror) -> Result<bool, Error> {
        let is_missing = self.store.as_ref().is_some_and(Place::is_missing);
        Ok(is_missing && mirror.meta(STORE)?.is_some())
    }

    /// Opens the store, if the service is a store. With `may_be_new`, a missing store is created.
    pub(super) fn open_store(
        &self,
        mirror: &Mirror,
        may_be_new: bool,
    ) -> Result<Option<Database>, Error> {
        let Some(place) = &self.store else { return Ok(None) };
        let is_known = mirror.meta(STORE)?.is_some();
        let store = place.open(is_known && !may_be_new)?;
        if !is_known && !mirror.is_read_only() {
            mirror.set_meta(STORE, Some(Service::Store.words().name))?;
        }
        Ok(Some(store))
    }

    /// Whether the service returns the stored statements.
    pub(super) fn is_readable(&self) -> bool {
        self.service != Service::Receiver
    }

    /// The service in messages.
    pub(super) fn shown(&self) -> String {
        let name = self.service.words().name;
        match &self.store {
            Some(place) => format!("{name} in {}", place.folder.display()),
            None => format!("{name} {}", shown(&self.url)),
        }
    }

    pub(super) fn check(&self, mirror: &Mirror) -> Result<(), Error> {
        if self.service == Service::Store {
            return self.graph.check(mirror);
        }
        let Words { url: code, name, example, .. } = self.service.words();
        for url in [&self.url, &self.query_url] {
            abreast_net::check_url(url).map_err(|cause| {
                let message = format!("cannot use {} as the {name}: {cause}", shown(url));
                Error::new(code, ExitCode::Usage, message)
                    .with_help(format!("give its address, like `{example}`"))
            })?;
        }
        self.graph.check(mirror)?;
        let asked = shown(&self.url);
        match mirror.meta(STORE)? {
            Some(known) if known != asked => {
                let message = format!("the state is of the copy in {known}, not of one in {asked}");
                Err(Error::new("sink.kind", ExitCode::Usage, message)
                    .with_help("give each copy a state of its own (`--state`)"))
            }
            Some(_) => Ok(()),
            None if mirror.is_read_only() => Ok(()),
            None => Ok(mirror.set_meta(STORE, Some(&asked))?),
        }
    }
}

/// The address for queries: the address for updates, except for servers with two addresses.
fn query_url(options: &SparqlOptions) -> String {
    if let Some(url) = &options.query_url {
        return url.clone();
    }
    if let Some(begin) = options.url.strip_suffix("/update") {
        return format!("{begin}/query");
    }
    // RDF4J and GraphDB.
    options.url.strip_suffix("/statements").unwrap_or(&options.url).to_owned()
}

/// An address without user and password.
pub(super) fn shown(url: &str) -> String {
    let Some(mut parsed) = url::Url::parse(url).ok().filter(url::Url::has_host) else {
        return "the address".to_owned();
    };
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.into()
}

/// Words for messages about a service, and its error codes.
struct Words {
    name: &'static str,
    example: &'static str,
    /// Code for a wrong address; the other codes are for refused credentials, other failures, and a
    /// refused item.
    url: &'static str,
    denied: &'static str,
    failed: &'static str,
    refused: &'static str,
}

impl Service {
    const fn words(self) -> Words {
        match self {
            Self::Endpoint | Self::GraphStore => Words {
                name: if matches!(self, Self::Endpoint) { "endpoint" } else { "graph store" },
                example: match self {
                    Self::Endpoint => "sparql:http://localhost:3030/ds/update",
                    _ => "graphstore:http://localhost:3030/ds/data",
                },
                url: "sparql.url",
                denied: "sparql.denied",
                failed: "sparql.failed",
                refused: "sparql.refused",
            },
            Self::Receiver => Words {
                name: "receiver",
                example: "push:http://localhost:8080/api/v1/sets/NAME/push",
                url: "receiver.url",
                denied: "receiver.denied",
                failed: "receiver.failed",
                refused: "receiver.refused",
            },
            Self::Store => Words {
                name: "store",
                example: "oxigraph:DIR",
                url: "oxigraph.folder",
                denied: "oxigraph.locked",
                failed: "oxigraph.failed",
                refused: "oxigraph.refused",
            },
        }
    }

    /// The code of an item that is refused.
    pub(super) const fn refused(self) -> &'static str {
        self.words().refused
    }

    /// The code and the sentence when nothing can be sent.
    pub(super) const fn broken(self) -> (&'static str, &'static str) {
        match self {
            Self::Endpoint => ("sparql.failed", "the endpoint takes no more updates"),
            Self::GraphStore => ("sparql.failed", "the graph store takes no more requests"),
            Self::Receiver => ("receiver.failed", "the receiver takes no more requests"),
            Self::Store => ("oxigraph.failed", "the store takes no more transactions"),
        }
    }

    /// A service that cannot be reached.
    pub(super) fn failed(self, error: &abreast_net::Error) -> Refusal {
        // The server has an internal error, or its response is too long.
        let is_odd = error.status().is_some_and(|status| status >= 500)
            || error.kind() == abreast_net::ErrorKind::Size;
        let is_passing = error.is_transient() || is_odd;
        let exit = if is_passing { ExitCode::Retryable } else { ExitCode::Usage };
        let Words { failed, name, .. } = self.words();
        Refusal::Endpoint(Error::new(failed, exit, format!("cannot use the {name}: {error}")))
    }

    /// The meaning of an error response of the service.
    pub(super) fn refusal(self, url: &str, status: StatusCode, message: &str) -> Refusal {
        let Words { url: code, denied, name, .. } = self.words();
        let answer = if message.is_empty() { String::new() } else { format!(": {message}") };
        let fatal = |code, exit, help: &str| {
            let message = format!("the {name} {} answered {status}{answer}", shown(url));
            Refusal::Endpoint(Error::new(code, exit, message).with_help(help.to_owned()))
        };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => fatal(
                denied,
                ExitCode::Auth,
                "give credentials for this host, as `--netrc` or in the URL, that may update",
            ),
            _ if status.is_redirection() => {
                fatal(code, ExitCode::Usage, "use the address that it leads to")
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => fatal(
                code,
                ExitCode::Usage,
                match self {
                    Self::Endpoint => {
                        "check the addresses of the endpoint: updates go to `sparql:URL`, queries to `--query-url`"
                    }
                    _ => "check the address",
                },
            ),
            _ => Refusal::Request(format!("the {name} answered {status}{answer}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_go_where_the_usual_servers_take_them() {
        let of = |url: &str, query_url: Option<&str>| {
            let query_url = query_url.map(str::to_owned);
            let options = SparqlOptions { url: url.to_owned(), query_url, graph: Graph::Default };
            super::query_url(&options)
        };
        assert_eq!(of("http://h/ds/update", None), "http://h/ds/query");
        assert_eq!(of("http://h/repositories/x/statements", None), "http://h/repositories/x");
        assert_eq!(of("http://h/sparql", None), "http://h/sparql");
        assert_eq!(of("http://h/sparql", Some("http://h/q")), "http://h/q");
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(shown("https://me:secret@h/update"), "https://h/update");
        assert!(!shown("me:secret@").contains("secret"));
    }
}
