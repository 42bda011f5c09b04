//! A Source whose resources a test sets and deletes.

use abreast_testkit::documents::{self, BEGIN, capability_list, document};
use abreast_testkit::pages::{Answer, Server};
use std::collections::BTreeMap;

/// A Source with a Capability List, a Resource List and an open Change List, which a test changes.
pub(crate) struct Source {
    pub(crate) server: Server,
    pub(crate) kept: BTreeMap<String, Vec<u8>>,
    pub(crate) changes: String,
    pub(crate) clock: u32,
    pub(crate) at: String,
    /// The start of the Change List.
    pub(crate) from: String,
    /// Makes the document of a resource out of the text that a test gives.
    pub(crate) form: fn(uri: &str, text: &str) -> String,
    pub(crate) media_type: Option<&'static str>,
}

impl Source {
    pub(crate) fn new() -> Self {
        Self::on(Server::start())
    }

    /// A Source on a server.
    pub(crate) fn on(server: Server) -> Self {
        let lists = ["resourcelist", "changelist"];
        let caps = capability_list(lists.map(|list| (list, server.url(&format!("/{list}.xml")))));
        server.body("/caps.xml", caps);
        let source = Self {
            server,
            kept: BTreeMap::new(),
            changes: String::new(),
            clock: 0,
            at: BEGIN.to_owned(),
            from: BEGIN.to_owned(),
            form: |_, text| text.to_owned(),
            media_type: None,
        };
        source.publish();
        source
    }

    /// A Source whose resources are entities, each with one statement.
    pub(crate) fn of_statements() -> Self {
        let form =
            |uri: &str, text: &str| format!("<{uri}> <http://ns.example/text> \"{text}\" .\n");
        Self { form, media_type: Some("application/n-triples"), ..Self::new() }
    }

    /// A Source that lists addresses of documents, each about an entity with another IRI.
    pub(crate) fn of_addresses() -> Self {
        let form = |uri: &str, text: &str| {
            format!("<{}> <http://ns.example/text> \"{text}\" .\n", Self::iri_of(uri))
        };
        Self { form, ..Self::of_statements() }
    }

    /// The entity that a document of an address describes.
    pub(crate) fn iri_of(uri: &str) -> String {
        uri.replacen("http://", "http://id.example/", 1)
    }

    /// Serves a resource, listed or not; returns the served bytes.
    pub(crate) fn serve(&self, path: &str, text: &str) -> String {
        let body = (self.form)(&self.server.url(path), text);
        let answer = Answer::ok(body.as_str());
        self.server.put(
            path,
            match self.media_type {
                Some(media_type) => answer.header("content-type", media_type),
                None => answer,
            },
        );
        body
    }

    pub(crate) fn now(&self) -> String {
        format!("2026-01-01T00:{:02}:{:02}Z", self.clock / 60, self.clock % 60)
    }

    /// A resource as an entry; `more` are further attributes.
    pub(crate) fn entry(&self, path: &str, body: &[u8], more: &str) -> String {
        documents::entry(&self.server.url(path), body, more)
    }

    fn log(&mut self, entry: &str) {
        self.clock += 1;
        let stamp = format!("datetime=\"{}\"", self.now());
        self.changes.push_str(&entry.replace("datetime=\"\"", &stamp));
    }

    /// Creates many resources at one time.
    pub(crate) fn create(&mut self, paths: impl Iterator<Item = String>, text: &str) {
        let before = self.clock;
        for path in paths {
            let body = self.serve(&path, text);
            let entry = self.entry(&path, body.as_bytes(), "change=\"created\" datetime=\"\"");
            self.kept.insert(path, body.into_bytes());
            self.clock = before;
            self.log(&entry);
        }
        self.publish();
    }

    /// Creates or updates a resource, with a change.
    pub(crate) fn set(&mut self, path: &str, text: &str) {
        let body = self.serve(path, text);
        let change = if self.kept.contains_key(path) { "updated" } else { "created" };
        self.kept.insert(path.to_owned(), body.as_bytes().to_vec());
        let entry =
            self.entry(path, body.as_bytes(), &format!("change=\"{change}\" datetime=\"\""));
        self.log(&entry);
        self.publish();
    }

    pub(crate) fn delete(&mut self, path: &str) {
        self.kept.remove(path);
        self.server.remove(path);
        let entry = format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"\"/></url>\n",
            self.server.url(path)
        );
        self.log(&entry);
        self.publish();
    }

    /// Publishes both lists. The Resource List stays at its instant: only `snapshot` moves it.
    pub(crate) fn publish(&self) {
        let changes = document(
            "urlset",
            &format!("capability=\"changelist\" from=\"{}\"", self.from),
            &self.changes,
        );
        self.server.body("/changelist.xml", changes);
        if !self.server.has_page("/resourcelist.xml") {
            self.server.body(
                "/resourcelist.xml",
                document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), ""),
            );
        }
    }

    /// Publishes the Resource List as of now.
    pub(crate) fn snapshot(&mut self) {
        self.at = self.now();
        let entries: String =
            self.kept.iter().map(|(path, body)| self.entry(path, body, "")).collect();
        let attributes = format!("capability=\"resourcelist\" at=\"{}\"", self.at);
        self.server.body("/resourcelist.xml", document("urlset", &attributes, &entries));
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/caps.xml")
    }
}

/// A plain Resource List with the given entries, and resources that all say hello.
pub(crate) fn list_of(server: &Server, locs: &[&str]) {
    let entries: String =
        locs.iter().map(|loc| format!("<url><loc>{}</loc></url>\n", server.url(loc))).collect();
    server.body(
        "/list.xml",
        document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &entries),
    );
    for loc in locs {
        server.body(loc.split('#').next().unwrap(), "hello");
    }
}
