//! SDShare documents of `abreast serve`, read by a strict client that is independent of the program's reader: plain HTTP,
//! plain XML, and the client of the specification's text [sdshare §Server Role, §Client Role].

use crate::rdf::{TURTLE, descriptions};
use crate::world::Source;
use abreast_rdf::{DescriptionLimits, Entities, ReadOptions, Syntax};
use abreast_testkit::eventually;
use oxrdf::{NamedOrBlankNode, Term, Triple, TripleRef};
use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::path::PathBuf;

const ATOM: &str = "http://www.w3.org/2005/Atom";
const CORE: &str = "http://www.sdshare.org/2012/core/";
const ATOM_TYPE: &str = "application/atom+xml";

/// A server of a set of entities and one of files.
struct Server {
    place: tempfile::TempDir,
    source: Source,
}

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Server {
    fn start(turtle: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["rdf", "files"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        fs::write(place.path().join("rdf/all.ttl"), turtle).unwrap();
        fs::write(place.path().join("files/a & b.txt"), "bytes").unwrap();
        let set = |name: &str, more: &str| {
            let folder = place.path().join(name);
            format!(
                "[[set]]\nname = \"{name}\"\nfolder = \"{}\"\ndebounce = \"30ms\"\n{more}\n",
                folder.display()
            )
        };
        let data = format!("data = \"{}\"\n", place.path().join("data").display());
        let config = data + &set("rdf", "origin = \"rdf\"") + &set("files", "");
        fs::write(place.path().join("abreast.toml"), config).unwrap();
        let source = Source::start_config(place.path().join("abreast.toml").to_str().unwrap());
        let server = Self { place, source };
        server.has(turtle);
        server
    }

    fn config(&self) -> PathBuf {
        self.place.path().join("abreast.toml")
    }

    /// Replaces the graph, and waits until it is published.
    fn replace(&self, turtle: &str) {
        let part = self.place.path().join("part");
        fs::write(&part, turtle).unwrap();
        fs::rename(part, self.place.path().join("rdf/all.ttl")).unwrap();
        self.has(turtle);
    }

    fn has(&self, turtle: &str) {
        let expected = descriptions(Syntax::Turtle, turtle);
        eventually("the graph is published", || {
            let mut copy = Client::default();
            copy.follow(self);
            copy.described() == expected
        });
    }

    fn ask(&self, target: &str, headers: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.source.address).unwrap();
        let head =
            format!("GET {target} HTTP/1.1\r\nHost: test\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let split = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let body = answer.split_off(split + 4);
        let head = String::from_utf8(answer).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head, body }
    }

    /// Path of a link's target; panics if the target is not on this server.
    fn target<'u>(&self, url: &'u str) -> &'u str {
        url.strip_prefix(self.source.url().trim_end_matches('/')).unwrap_or_else(|| panic!("{url}"))
    }

    fn feed(&self, url: &str) -> Element {
        let target = if url.starts_with('/') { url } else { self.target(url) };
        let reply = self.ask(target, "");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(ATOM_TYPE)), "{url}");
        let feed = Element::parse(&reply.body);
        strict(&feed);
        feed
    }

    /// The entries of all pages.
    fn fragments(&self, url: &str) -> Vec<Element> {
        let (mut entries, mut next) = (Vec::new(), Some(url.to_owned()));
        while let Some(url) = next {
            let feed = self.feed(&url);
            next = feed.links("next").first().map(|link| link.href.clone());
            entries.extend(feed.children.into_iter().filter(|child| child.is(ATOM, "entry")));
        }
        entries
    }

    /// The newest snapshot once it is complete.
    fn snapshot(&self) -> Element {
        let mut newest = None;
        eventually("there is a snapshot", || {
            let feed = self.feed("/rdf/sdshare/snapshots");
            newest = feed.all(ATOM, "entry").next().cloned();
            let url = newest.as_ref().map(|entry| entry.links("snapshot")[0].href.clone());
            url.is_some_and(|url| self.ask(self.target(&url), "").status == 200)
        });
        newest.unwrap()
    }

    fn triples(&self, url: &str, media_type: &str, document: u64) -> Vec<Triple> {
        let reply = self.ask(self.target(url), &format!("Accept: {media_type}\r\n"));
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(media_type)), "{url}");
        let options = ReadOptions::default().with_document(document);
        let syntax = Syntax::of_sdshare_media_type(media_type).unwrap();
        let mut triples = Vec::new();
        abreast_rdf::read(syntax, &reply.body[..], &options, &mut |quad| {
            triples.push(Triple::from(TripleRef::from(quad)));
            ControlFlow::Continue(())
        })
        .unwrap();
        triples
    }
}

/// An element as XML has it.
#[derive(Clone, Debug, Default)]
struct Element {
    namespace: String,
    name: String,
    attributes: BTreeMap<String, String>,
    text: String,
    children: Vec<Element>,
}

#[derive(Clone, Debug)]
struct Link {
    kind: Option<String>,
    href: String,
}

impl Element {
    fn parse(bytes: &[u8]) -> Self {
        let mut reader = NsReader::from_reader(bytes);
        let mut open = vec![Self::default()];
        loop {
            let (namespace, event) = reader.read_resolved_event().unwrap();
            let namespace = match namespace {
                ResolveResult::Bound(namespace) => namespace.0.to_owned(),
                _ => String::new(),
            };
            match event {
                Event::Start(start) => open.push(Self::new(namespace, &start)),
                Event::Empty(start) => {
                    open.last_mut().unwrap().children.push(Self::new(namespace, &start));
                }
                Event::End(_) => {
                    let done = open.pop().unwrap();
                    open.last_mut().unwrap().children.push(done);
                }
                Event::Text(text) => open.last_mut().unwrap().text += &*text,
                Event::GeneralRef(name) => {
                    let text = format!("&{};", &*name);
                    open.last_mut().unwrap().text += &quick_xml::escape::unescape(&text).unwrap();
                }
                Event::DocType(_) => panic!("a DOCTYPE"),
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(open.len(), 1);
        open[0].children.pop().unwrap()
    }

    fn new(namespace: String, start: &BytesStart<'_>) -> Self {
        let attributes = start.attributes().map(|attribute| {
            let attribute = attribute.unwrap();
            let value = quick_xml::escape::unescape(&attribute.value).unwrap();
            (attribute.key.0.to_owned(), value.into_owned())
        });
        let attributes = attributes.collect();
        let name = start.local_name().as_ref().to_owned();
        Self { namespace, name, attributes, ..Self::default() }
    }

    fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    fn all(&self, namespace: &'static str, name: &'static str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.is(namespace, name))
    }

    /// The text of the only child of that name.
    fn one(&self, namespace: &'static str, name: &'static str) -> &str {
        let found: Vec<_> = self.all(namespace, name).collect();
        let [one] = found[..] else { panic!("{} `{name}` in {self:?}", found.len()) };
        &one.text
    }

    /// Links of a relation of Atom, or of SDShare by its short name.
    fn links(&self, relation: &str) -> Vec<Link> {
        let long = format!("{CORE}{relation}");
        let is = |link: &&Self| {
            let own = link.attributes.get("rel").map_or("alternate", String::as_str);
            own == relation || own == long
        };
        let link = |link: &Self| Link {
            kind: link.attributes.get("type").cloned(),
            href: link.attributes["href"].clone(),
        };
        self.all(ATOM, "link").filter(is).map(link).collect()
    }
}

/// What Atom requires of every feed [rfc4287 §4.1.1, §4.1.2, §3.3].
fn strict(feed: &Element) {
    assert!(feed.is(ATOM, "feed"));
    let is_time = |text: &str| {
        text.len() == 27
            && text.ends_with('Z')
            && text.bytes().enumerate().all(|(place, byte)| match place {
                4 | 7 => byte == b'-',
                10 => byte == b'T',
                13 | 16 => byte == b':',
                19 => byte == b'.',
                26 => true,
                _ => byte.is_ascii_digit(),
            })
    };
    assert!(feed.one(ATOM, "id").starts_with("http"));
    assert!(!feed.one(ATOM, "title").is_empty() && is_time(feed.one(ATOM, "updated")));
    assert!(!feed.all(ATOM, "author").next().unwrap().one(ATOM, "name").is_empty());
    assert!(feed.links("next").len() <= 1 && feed.links("self").len() == 1);
    let mut ids = HashSet::new();
    for entry in feed.all(ATOM, "entry") {
        assert!(ids.insert(entry.one(ATOM, "id")), "{entry:?}");
        assert!(!entry.one(ATOM, "title").is_empty() && is_time(entry.one(ATOM, "updated")));
        let alternates = entry.links("alternate");
        let types: HashSet<_> = alternates.iter().map(|link| &link.kind).collect();
        assert!(!alternates.is_empty() && types.len() == alternates.len(), "{entry:?}");
    }
    let first = feed.children.iter().position(|child| child.is(ATOM, "entry"));
    let rest = &feed.children[first.unwrap_or(feed.children.len())..];
    assert!(rest.iter().all(|child| child.is(ATOM, "entry")), "entries come last");
}

/// Links of SDShare are typed, and exactly they are repeated as `alternate`.
fn repeated(entry: &Element, relation: &str) -> Vec<Link> {
    let links = entry.links(relation);
    let pairs = |links: &[Link]| -> BTreeSet<(String, String)> {
        links.iter().map(|link| (link.kind.clone().unwrap(), link.href.clone())).collect()
    };
    assert!(!links.is_empty(), "{entry:?}");
    assert_eq!(pairs(&links), pairs(&entry.links("alternate")));
    links
}

/// The client of the specification's text: it has no more than a graph and the time t.
#[derive(Default)]
struct Client {
    graph: HashSet<Triple>,
    time: Option<String>,
    documents: u64,
    /// Takes `since` for the time after which it wants changes, as some do.
    is_exclusive: bool,
}

impl Client {
    fn load(&mut self, server: &Server, link: &Link) {
        self.documents += 1;
        self.graph.extend(server.triples(
            &link.href,
            link.kind.as_deref().unwrap(),
            self.documents,
        ));
    }

    /// Reads the fragments since t, in the order of the feed or its reverse.
    fn follow(&mut self, server: &Server) {
        let since = self.time.as_ref().map_or(String::new(), |time| format!("?since={time}"));
        let mut entries = server.fragments(&format!("/rdf/sdshare/fragments{since}"));
        if let Some(time) = self.time.as_deref().filter(|_| self.is_exclusive) {
            entries.retain(|entry| entry.one(ATOM, "updated") > time);
        }
        if self.documents.is_multiple_of(2) {
            entries.reverse();
        }
        for entry in &entries {
            self.remove(entry.one(CORE, "resource"));
            let links = entry.links("fragment");
            let link = &links[self.documents as usize % links.len()];
            self.load(server, link);
        }
        let latest = entries.iter().map(|entry| entry.one(ATOM, "updated").to_owned()).max();
        self.time = latest.max(self.time.take());
    }

    /// Removes the fragment of a resource by the algorithm of the server.
    fn remove(&mut self, resource: &str) {
        let mut subjects = vec![resource.to_owned()];
        while let Some(subject) = subjects.pop() {
            let of = |triple: &Triple| match &triple.subject {
                NamedOrBlankNode::NamedNode(node) => node.as_str() == subject,
                NamedOrBlankNode::BlankNode(node) => node.to_string() == subject,
            };
            let removed: Vec<_> = self.graph.extract_if(of).collect();
            for triple in removed {
                if let Term::BlankNode(node) = triple.object {
                    subjects.push(node.to_string());
                }
            }
        }
    }

    fn described(&self) -> BTreeMap<String, Vec<u8>> {
        let entities = Entities::new(self.graph.iter().map(Triple::as_ref));
        let all = entities.descriptions(DescriptionLimits::default());
        all.map(|found| found.map(|found| (found.entity, found.canonical.lines)).unwrap()).collect()
    }
}

fn changed() -> String {
    TURTLE.replace("London", "Paris").replace(":b a", ":c a")
}

#[test]
fn an_overview_has_one_entry_for_each_collection() {
    let server = Server::start(TURTLE);
    let overview = server.feed("/sdshare");
    let collections: Vec<_> = overview
        .all(ATOM, "entry")
        .map(|entry| {
            let links = repeated(entry, "collectionfeed");
            assert_eq!((links.len(), links[0].kind.as_deref()), (1, Some(ATOM_TYPE)));
            server.target(&links[0].href).to_owned()
        })
        .collect();
    assert_eq!(collections, ["/rdf/sdshare", "/files/sdshare"]);
}

#[test]
fn a_collection_has_one_entry_for_each_of_its_feeds() {
    let server = Server::start(TURTLE);
    for set in ["rdf", "files"] {
        let collection = server.feed(&format!("/{set}/sdshare"));
        let entries: Vec<_> = collection.all(ATOM, "entry").collect();
        assert_eq!(entries.len(), 2);
        for (relation, feed) in [("snapshotsfeed", "snapshots"), ("fragmentsfeed", "fragments")] {
            let of: Vec<_> =
                entries.iter().filter(|entry| !entry.links(relation).is_empty()).collect();
            assert_eq!(of.len(), 1);
            let links = repeated(of[0], relation);
            assert_eq!(links[0].kind.as_deref(), Some(ATOM_TYPE));
            // Without `since`: clients add it.
            assert_eq!(server.target(&links[0].href), format!("/{set}/sdshare/{feed}"));
        }
    }
}

#[test]
fn snapshots_and_chunks_are_of_the_last_change_they_have() {
    let server = Server::start(TURTLE);
    let entry = server.snapshot();
    let links = repeated(&entry, "snapshot");
    let types: Vec<_> = links.iter().map(|link| link.kind.clone().unwrap()).collect();
    assert!(types.contains(&"application/n-triples".to_owned()), "{types:?}");
    let newest = server.fragments("/rdf/sdshare/fragments");
    let newest = newest.iter().map(|entry| entry.one(ATOM, "updated")).max();
    assert_eq!(Some(entry.one(ATOM, "updated")), newest);
    let expected = descriptions(Syntax::Turtle, TURTLE);
    for link in &links {
        let mut client = Client::default();
        client.load(&server, link);
        assert_eq!(client.described(), expected, "{link:?}");
    }
    let chunks = entry.links("chunked-snapshot");
    assert_eq!((chunks.len(), chunks[0].kind.as_deref()), (1, Some(ATOM_TYPE)));
    let chunks = server.feed(&chunks[0].href);
    let mut client = Client::default();
    for chunk in chunks.all(ATOM, "entry") {
        client.load(&server, &repeated(chunk, "snapshot-component")[0]);
    }
    assert_eq!(client.described(), expected);
}

#[test]
fn created_updated_and_deleted_resources_are_listed_once() {
    let server = Server::start(TURTLE);
    server.replace(&changed());
    let entries = server.fragments("/rdf/sdshare/fragments");
    let mut resources: Vec<_> = entries.iter().map(|entry| entry.one(CORE, "resource")).collect();
    resources.sort_unstable();
    assert_eq!(resources, ["a", "b", "c"].map(|name| format!("http://id.example/{name}")));
    for entry in &entries {
        for link in repeated(entry, "fragment") {
            let triples = server.triples(&link.href, link.kind.as_deref().unwrap(), 0);
            let is_deleted = entry.one(CORE, "resource").ends_with("/b");
            assert_eq!(triples.is_empty(), is_deleted, "{link:?}");
            // Its own resource and blank nodes are all that it speaks of.
            assert!(triples.iter().all(|triple| match &triple.subject {
                NamedOrBlankNode::NamedNode(node) => node.as_str() == entry.one(CORE, "resource"),
                NamedOrBlankNode::BlankNode(_) => true,
            }));
            let unknown =
                server.ask(server.target(&link.href), "Accept: application/x-unknown\r\n");
            assert_eq!(unknown.status, 406);
        }
    }
    let files = server.fragments("/files/sdshare/fragments");
    let [file] = &files[..] else { panic!("{files:?}") };
    let links = repeated(file, "fragment");
    assert_eq!(server.ask(server.target(&links[0].href), "").body, b"bytes");
}

#[test]
fn since_leaves_out_what_is_older_and_nothing_else() {
    let server = Server::start(TURTLE);
    server.replace(&changed());
    let all = server.fragments("/rdf/sdshare/fragments");
    let times: Vec<_> = all.iter().map(|entry| entry.one(ATOM, "updated").to_owned()).collect();
    assert_eq!(times.iter().collect::<BTreeSet<_>>().len(), times.len(), "no time twice");
    let at = |since: &str| -> Vec<String> {
        let entries = server.fragments(&format!("/rdf/sdshare/fragments?since={since}"));
        entries.iter().map(|entry| entry.one(ATOM, "updated").to_owned()).collect()
    };
    for time in &times {
        let expected: Vec<_> = times.iter().filter(|other| *other >= time).cloned().collect();
        assert_eq!(at(time), expected);
        assert_eq!(at(&time.replace('Z', "%2B00:00")), expected);
        assert_eq!(at(&time.replace('Z', "000000Z")), expected);
    }
    assert_eq!(at("2999-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(server.ask("/rdf/sdshare/fragments?since=1", "").status, 400);
}

#[test]
fn every_page_but_the_last_has_one_next() {
    let mut turtle = String::from("@prefix : <http://id.example/> .\n");
    for number in 0..2_100 {
        let _ = writeln!(turtle, ":{number:04} :p '{number}' .");
    }
    let server = Server::start(&turtle);
    let (mut url, mut seen, mut pages) =
        ("/rdf/sdshare/fragments".to_owned(), HashSet::new(), Vec::new());
    loop {
        let page = server.feed(&url);
        for entry in page.all(ATOM, "entry") {
            assert!(seen.insert(entry.one(CORE, "resource").to_owned()));
        }
        let next = page.links("next");
        pages.push(next.len());
        let Some(next) = next.into_iter().next() else { break };
        url = next.href;
    }
    assert_eq!((seen.len(), pages.len()), (2_100, 3), "{pages:?}");
}

#[test]
fn clients_of_the_text_have_the_graph_after_every_change() {
    let server = Server::start(TURTLE);
    let mut from_snapshot = Client::default();
    let snapshot = server.snapshot();
    from_snapshot.load(&server, &snapshot.links("snapshot")[0]);
    from_snapshot.time = Some(snapshot.one(ATOM, "updated").to_owned());
    let reversed = Client { documents: 1, ..Client::default() };
    let exclusive = Client { is_exclusive: true, ..Client::default() };
    let mut clients = [from_snapshot, Client::default(), reversed, exclusive];
    let same = TURTLE.replace("London", "Bonn");
    let few = "<http://id.example/few> <http://id.example/p> [] .";
    for turtle in [TURTLE, &changed(), &same, TURTLE, few, &changed()] {
        server.replace(turtle);
        for client in &mut clients {
            client.follow(&server);
            assert_eq!(client.described(), descriptions(Syntax::Turtle, turtle));
        }
    }
}

#[test]
fn times_increase_and_deletions_stay_over_restarts() {
    let mut server = Server::start(TURTLE);
    let latest = |server: &Server| {
        let entries = server.fragments("/rdf/sdshare/fragments");
        let times = entries.iter().map(|entry| entry.one(ATOM, "updated").to_owned());
        times.max().unwrap()
    };
    let mut times = vec![latest(&server)];
    let port = server.source.port();
    for turtle in [changed(), TURTLE.to_owned(), changed()] {
        server.replace(&turtle);
        times.push(latest(&server));
        let Server { place, source } = server;
        source.kill();
        let config = place.path().join("abreast.toml");
        let source = Source::start_config_at(config.to_str().unwrap(), port);
        server = Server { place, source };
        server.has(&turtle);
    }
    assert!(times.is_sorted_by(|one, other| one < other), "{times:?}");
    let entries = server.fragments("/rdf/sdshare/fragments");
    assert!(entries.iter().any(|entry| entry.one(CORE, "resource") == "http://id.example/b"));
    assert!(server.config().exists());
}

#[test]
fn no_feed_has_a_name_of_an_older_draft() {
    let server = Server::start(TURTLE);
    server.snapshot();
    for path in ["/sdshare", "/rdf/sdshare", "/rdf/sdshare/snapshots", "/rdf/sdshare/fragments"] {
        let text = String::from_utf8(server.ask(path, "").body).unwrap();
        for name in ["egovpt", "TopicSI", "ResourceUri", "/core\""] {
            assert!(!text.contains(name), "{path} has {name}");
        }
        let html = server.ask(path, "Accept: text/html, image/gif, image/jpeg, */*; q=0.2\r\n");
        assert_eq!(html.header("content-type"), Some(ATOM_TYPE));
        let tag = html.header("etag").unwrap();
        assert_eq!(server.ask(path, &format!("If-None-Match: {tag}\r\n")).status, 304);
    }
}

#[test]
fn the_table_in_the_documentation_names_tests() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = fs::read_to_string(format!("{root}/docs/sdshare.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with('|') && line.contains("tests/it/"));
    let mut count = 0;
    for row in rows {
        let quoted: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        let file = quoted.iter().find(|name| name.contains("tests/it/")).unwrap();
        let code = fs::read_to_string(format!("{root}/{file}")).unwrap();
        for name in quoted.iter().filter(|name| name.contains('_') && !name.contains('/')) {
            assert!(code.contains(&format!("fn {name}()")), "{file} has no {name}");
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}
