//! A server of SDShare as others write them; each test sets its habits.

use abreast_testkit::pages::{Answer, Server};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

pub(crate) const ATOM: &str = "application/atom+xml";
/// A time in the past, in seconds: 2026-01-01.
const EPOCH: i64 = 1_767_225_600;

/// How the server behaves.
#[derive(Clone)]
pub(crate) struct Habits {
    /// Namespace of relations and elements.
    pub(crate) namespace: &'static str,
    /// The element that contains the resource.
    pub(crate) resource: &'static str,
    /// Only `alternate` in entries of snapshots and fragments.
    pub(crate) only_alternates: bool,
    /// Entries of a page.
    pub(crate) page: usize,
    pub(crate) newest_first: bool,
    /// Whether `since` excludes changes at exactly that time.
    pub(crate) is_exclusive: bool,
    /// Times are whole seconds.
    pub(crate) whole_seconds: bool,
    /// Chunks of a snapshot; none without.
    pub(crate) chunks: usize,
    pub(crate) has_snapshots: bool,
    /// The media type of snapshots and fragments.
    pub(crate) media_type: &'static str,
    /// By how many seconds the times of changes are ahead of the clock.
    pub(crate) ahead: i64,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            namespace: "http://www.sdshare.org/2012/core/",
            resource: "resource",
            only_alternates: false,
            page: 3,
            newest_first: true,
            is_exclusive: false,
            whole_seconds: false,
            chunks: 0,
            has_snapshots: true,
            media_type: "application/n-triples",
            ahead: 0,
        }
    }
}

impl Habits {
    /// The draft of 2010, in RDF/XML.
    pub(crate) fn of_2010() -> Self {
        Self {
            namespace: "http://www.egovpt.org/sdshare/",
            resource: "TopicSI",
            only_alternates: true,
            media_type: "application/rdf+xml",
            ..Self::default()
        }
    }
}

/// A resource: its statements, empty when it is deleted, and when it changed.
#[derive(Clone)]
struct Entity {
    lines: String,
    updated: i64,
}

/// The content of the server, and of a snapshot.
#[derive(Clone, Default)]
pub(crate) struct Data {
    entities: BTreeMap<String, Entity>,
    now: i64,
    pub(crate) habits: Habits,
    snapshot: Option<(BTreeMap<String, Entity>, i64)>,
    /// Changes before are not listed any more.
    pruned: i64,
}

#[derive(Clone)]
pub(crate) struct SdSource {
    pub(crate) server: Server,
    data: Arc<Mutex<Data>>,
}

impl SdSource {
    pub(crate) fn start(habits: Habits) -> Self {
        let server = Server::start();
        let data = Arc::new(Mutex::new(Data { habits, now: EPOCH * 1_000_000, ..Data::default() }));
        let source = Self { server, data };
        let own = (source.server.base.clone(), Arc::clone(&source.data));
        source.server.handler(move |target, _| own.1.lock().unwrap().answer(&own.0, target));
        source
    }

    /// The same collection on another server.
    pub(crate) fn at_another_address(&self) -> Self {
        let source = Self { server: Server::start(), data: Arc::clone(&self.data) };
        source.answer_first(|_, _| None);
        source
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/overview")
    }

    pub(crate) fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap()
    }

    /// An answer at a path, before anything else.
    pub(crate) fn answer_first(
        &self,
        answer: impl Fn(&str, usize) -> Option<Answer> + Send + Sync + 'static,
    ) {
        let own = (self.server.base.clone(), Arc::clone(&self.data));
        self.server.handler(move |target, number| {
            answer(target, number).or_else(|| own.1.lock().unwrap().answer(&own.0, target))
        });
    }

    /// Puts a resource, with statements in N-Triples; nothing deletes it.
    pub(crate) fn put(&self, iri: &str, lines: &str) {
        let mut data = self.data();
        data.now += if data.habits.whole_seconds { 0 } else { 1_000_001 };
        let updated = data.now + data.habits.ahead * 1_000_000;
        data.entities.insert(iri.to_owned(), Entity { lines: lines.to_owned(), updated });
    }

    pub(crate) fn name(number: usize) -> String {
        format!("http://id.example/id/{number}")
    }

    /// Puts a numbered resource with a blank node and a value.
    pub(crate) fn put_number(&self, number: usize, value: &str) {
        let iri = Self::name(number);
        let lines = format!(
            "<{iri}> <http://ns.example/value> \"{value}\" .\n<{iri}> <http://ns.example/part> _:p{number} .\n\
             _:p{number} <http://ns.example/of> \"part of {value}\" .\n"
        );
        self.put(&iri, &lines);
    }

    pub(crate) fn delete_number(&self, number: usize) {
        self.put(&Self::name(number), "");
    }

    /// Makes a snapshot of what there is.
    pub(crate) fn make_snapshot(&self) {
        let mut data = self.data();
        data.snapshot = Some((data.entities.clone(), data.now));
    }

    /// Goes on by whole seconds.
    pub(crate) fn wait(&self, seconds: i64) {
        self.data().now += seconds * 1_000_000;
    }

    /// All statements there are now.
    pub(crate) fn statements(&self) -> String {
        self.data().entities.values().map(|entity| entity.lines.as_str()).collect()
    }
}

impl Data {
    /// Removes deleted entities, so that feeds do not contain them any more.
    pub(crate) fn forget_deleted(&mut self) {
        self.entities.retain(|_, entity| !entity.lines.is_empty());
    }

    /// Lists no changes but those from now on, and the newest one.
    pub(crate) fn prune(&mut self) {
        self.pruned = self.entities.values().map(|entity| entity.updated).max().unwrap_or_default();
    }

    fn time(&self, micros: i64) -> String {
        let time = abreast_webtypes::Timestamp::from_micros(micros);
        if self.habits.whole_seconds {
            abreast_webtypes::Timestamp::from_seconds(micros.div_euclid(1_000_000)).to_string()
        } else {
            time.to_string()
        }
    }

    fn answer(&self, base: &str, target: &str) -> Option<Answer> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let value = |name: &str| {
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let feed = |entries: &str, more: &str, updated: i64| {
            let updated = self.time(updated);
            let body = format!(
                "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"{}\"><id>{base}{target}</id><title>t</title>\
                 <author><name>a</name></author><updated>{updated}</updated>{more}{entries}</feed>",
                self.habits.namespace
            );
            let clock = UNIX_EPOCH + Duration::from_micros(self.now as u64);
            let answer = Answer::ok(body.replace('&', "&amp;")).header("content-type", ATOM);
            Some(answer.header("date", &httpdate::fmt_http_date(clock)))
        };
        let body = |lines: &str| {
            let text = self.in_syntax(lines);
            Some(Answer::ok(text).header("content-type", self.habits.media_type))
        };
        match path {
            "/overview" => {
                let link = self.link("collectionfeed", "/collection", ATOM, true);
                feed(&self.entry("o", self.now, &link), "", self.now)
            }
            "/collection" => {
                let mut entries = String::new();
                for (relation, to) in
                    [("snapshotsfeed", "/snapshots"), ("fragmentsfeed", "/fragments")]
                {
                    entries += &self.entry(to, self.now, &self.link(relation, to, ATOM, true));
                }
                feed(&entries, "", self.now)
            }
            "/snapshots" => {
                let mut entries = String::new();
                if let Some((_, updated)) =
                    self.snapshot.as_ref().filter(|_| self.habits.has_snapshots)
                {
                    // An older one comes first, and is wrong.
                    let old = self.link("snapshot", "/old", self.habits.media_type, false);
                    entries += &self.entry("old", updated - 86_400_000_000, &old);
                    let mut links =
                        self.link("snapshot", "/snapshot", self.habits.media_type, false);
                    if self.habits.chunks > 0 {
                        links += &self.link("chunked-snapshot", "/chunks", ATOM, false);
                    }
                    entries += &self.entry("new", *updated, &links);
                }
                feed(&entries, "", self.now)
            }
            "/chunks" => {
                let entries: String = (0..self.habits.chunks)
                    .map(|chunk| {
                        let to = format!("/chunk{chunk}");
                        let link =
                            self.link("snapshot-component", &to, self.habits.media_type, false);
                        self.entry(&to, self.now, &link)
                    })
                    .collect();
                feed(&entries, "", self.now)
            }
            "/snapshot" => {
                let (entities, _) = self.snapshot.as_ref()?;
                body(&entities.values().map(|entity| entity.lines.as_str()).collect::<String>())
            }
            "/fragments" => {
                let since = value("since")
                    .map(|text| abreast_sdshare::parse_since(text).unwrap().unwrap().as_micros());
                let stamp = |entity: &Entity| {
                    let step = if self.habits.whole_seconds { 1_000_000 } else { 1 };
                    entity.updated.div_euclid(step) * step
                };
                let mut changed: Vec<_> = self
                    .entities
                    .iter()
                    .filter(|(_, entity)| entity.updated >= self.pruned)
                    .filter(|(_, entity)| {
                        since.is_none_or(|since| {
                            stamp(entity) > since
                                || stamp(entity) == since && !self.habits.is_exclusive
                        })
                    })
                    .collect();
                changed.sort_by_key(|(_, entity)| entity.updated);
                if self.habits.newest_first {
                    changed.reverse();
                }
                let page: usize = value("page").map_or(0, |text| text.parse().unwrap());
                let from = page * self.habits.page;
                let entries: String = changed
                    .iter()
                    .skip(from)
                    .take(self.habits.page)
                    .map(|(iri, entity)| {
                        let mut encoded = String::new();
                        abreast_webtypes::encode_segment(iri.as_bytes(), &mut encoded);
                        let link = self.link(
                            "fragment",
                            &format!("/fragment/{encoded}"),
                            self.habits.media_type,
                            false,
                        );
                        let name = self.habits.resource;
                        let resource = format!("{link}<s:{name}>{iri}</s:{name}>");
                        self.entry(&format!("{iri}-{}", entity.updated), entity.updated, &resource)
                    })
                    .collect();
                let mut next = String::new();
                if from + self.habits.page < changed.len() {
                    let since =
                        value("since").map_or_else(String::new, |text| format!("&since={text}"));
                    let _ = write!(next, "<link rel=\"next\" href=\"?page={}{since}\"/>", page + 1);
                }
                let newest = self.entities.values().map(|entity| entity.updated).max();
                feed(&entries, &next, newest.unwrap_or_default().max(self.now))
            }
            _ => {
                if let Some(chunk) = path.strip_prefix("/chunk") {
                    let chunk: usize = chunk.parse().ok()?;
                    let entities = &self.snapshot.as_ref()?.0;
                    let lines = entities.values().enumerate();
                    let lines = lines.filter(|(number, _)| number % self.habits.chunks == chunk);
                    return body(
                        &lines.map(|(_, entity)| entity.lines.as_str()).collect::<String>(),
                    );
                }
                let iri = path.strip_prefix("/fragment/")?;
                let iri = abreast_webtypes::decode_segment(iri.as_bytes());
                let entity = self.entities.get(&String::from_utf8(iri).ok()?)?;
                body(&entity.lines)
            }
        }
    }

    fn entry(&self, id: &str, updated: i64, more: &str) -> String {
        let updated = self.time(updated);
        format!(
            "<entry><id>urn:x:{id}</id><title>e</title><updated>{updated}</updated>{more}</entry>\n"
        )
    }

    fn link(&self, relation: &str, href: &str, media_type: &str, is_feed: bool) -> String {
        let namespace = self.habits.namespace;
        let alternate = format!("<link rel=\"alternate\" type=\"{media_type}\" href=\"{href}\"/>");
        if self.habits.only_alternates && !is_feed {
            return alternate;
        }
        format!(
            "<link rel=\"{namespace}{relation}\" type=\"{media_type}\" href=\"{href}\"/>{alternate}"
        )
    }

    fn in_syntax(&self, lines: &str) -> Vec<u8> {
        if self.habits.media_type != "application/rdf+xml" {
            return lines.as_bytes().to_vec();
        }
        let canonical = abreast_rdf::canonical_lines(lines.as_bytes()).unwrap().lines;
        let mut out = Vec::new();
        let options = abreast_rdf::WriteOptions::default();
        abreast_rdf::write(abreast_rdf::Syntax::RdfXml, &canonical, &options, &mut out).unwrap();
        out
    }
}
