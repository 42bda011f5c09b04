//! A Source of ResourceSync 0.1 whose resources a test sets and deletes.

use abreast_testkit::digest::{hex, md5_hex};
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::zip::Zip;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Relation type of change sets.
pub(crate) const CHANGE_SET: &str = "http://www.openarchives.org/rs/changeset";

/// A document: its root with attributes, and its content.
pub(crate) fn document(root: &str, attributes: &str, inside: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\" {attributes}>\n\
         {inside}</{root}>\n"
    )
}

/// The time of a document.
pub(crate) fn modified(time: &str) -> String {
    format!("<xhtml:meta name=\"DCTERMS.modified\" content=\"{time}\"/>\n")
}

/// A link of a document or an entry.
pub(crate) fn link(rel: &str, href: &str) -> String {
    format!("<xhtml:link rel=\"{rel}\" href=\"{href}\"/>\n")
}

/// The bytes that hexadecimal digits are, in base64.
pub(crate) fn base64_of_hex(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap())
        .collect();
    assert_eq!(hex(&bytes), text);
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// `rs:fixity` and `rs:size` of a body.
pub(crate) fn fixity(body: &str) -> String {
    let digest = base64_of_hex(&md5_hex(body));
    format!("<rs:fixity type=\"md5\">{digest}</rs:fixity><rs:size>{}</rs:size>", body.len())
}

/// One change.
#[derive(Clone, Debug)]
struct Change {
    path: String,
    time: String,
    /// `created`, `updated` or `deleted`.
    kind: &'static str,
    /// What else its entry has.
    more: String,
}

/// The habits of a Source.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Changes of a closed change set.
    pub(crate) per_set: usize,
    /// Sitemaps; more than one have an index.
    pub(crate) sitemaps: usize,
    /// Documents contain their modification time.
    pub(crate) modified: bool,
    /// Entries contain digest and length.
    pub(crate) fixity: bool,
    /// Change sets link to the previous one.
    pub(crate) prev: bool,
    /// The root of change sets has `rs:type`.
    pub(crate) typed: bool,
    /// Entries of a change set come in no order.
    pub(crate) unordered: bool,
    /// Seconds between changes.
    pub(crate) step: u64,
    /// Times have fractions of seconds.
    pub(crate) is_fine: bool,
    /// Times are written without a zone.
    pub(crate) is_zoneless: bool,
    /// Deleted resources stay in the Sitemap, as such.
    pub(crate) tombstones: bool,
    /// Documents have validators.
    pub(crate) etags: bool,
    /// Each change set but the first also has a change with a time of long ago.
    pub(crate) late: bool,
}

impl Shape {
    pub(crate) const DEFAULT: Self = Self {
        per_set: 3,
        sitemaps: 1,
        modified: true,
        fixity: true,
        prev: true,
        typed: true,
        unordered: false,
        step: 1_800,
        is_fine: true,
        is_zoneless: false,
        tombstones: false,
        etags: true,
        late: false,
    };
}

impl Default for Shape {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A Source with a Sitemap, change sets and optionally a dump, which a test changes.
pub(crate) struct OldSource {
    pub(crate) server: Server,
    pub(crate) kept: BTreeMap<String, String>,
    pub(crate) shape: Shape,
    changes: Vec<Change>,
    clock: u64,
    /// Change sets before this one were removed.
    first_set: usize,
    /// Links at the top of the Sitemap.
    pub(crate) links: String,
    /// Links at the top of the change sets.
    pub(crate) set_links: String,
    /// What else the entries of resources have, by path.
    pub(crate) more: BTreeMap<String, String>,
}

impl OldSource {
    pub(crate) fn new() -> Self {
        Self::of(Shape::default())
    }

    pub(crate) fn of(shape: Shape) -> Self {
        let source = Self {
            server: Server::start(),
            kept: BTreeMap::new(),
            shape,
            changes: Vec::new(),
            clock: 0,
            first_set: 0,
            links: String::new(),
            set_links: String::new(),
            more: BTreeMap::new(),
        };
        source.publish();
        source.snapshot();
        source
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/s.xml")
    }

    pub(crate) fn now(&self) -> String {
        let seconds = 1_767_225_600 + self.clock * self.shape.step;
        let (day, rest) = ((seconds - 1_767_225_600) / 86_400, seconds % 86_400);
        let fraction = if self.shape.is_fine { ".000001" } else { "" };
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        assert!(day < 31, "the clock of a test is for a month");
        let zone = if self.shape.is_zoneless { "" } else { "Z" };
        format!("2026-01-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}", day + 1)
    }

    /// Waits for as long as so many changes take.
    pub(crate) fn wait(&mut self, steps: u64) {
        self.clock += steps;
    }

    fn put(&self, path: &str, body: String) {
        let etag = format!("\"{}\"", md5_hex(&body));
        let answer = Answer::ok(body);
        self.server.put(path, if self.shape.etags { answer.header("etag", &etag) } else { answer });
    }

    fn log(&mut self, path: &str, kind: &'static str, more: String) {
        self.clock += 1;
        let time = self.now();
        self.changes.push(Change { path: path.to_owned(), time, kind, more });
        self.publish();
    }

    fn facts(&self, path: &str, body: &str) -> String {
        let fixity = if self.shape.fixity { fixity(body) } else { String::new() };
        fixity + self.more.get(path).map_or("", String::as_str)
    }

    /// Creates or updates a resource, with a change.
    pub(crate) fn set(&mut self, path: &str, body: &str) {
        self.set_with(path, body, "");
    }

    /// The same, with more in the entry of the change.
    pub(crate) fn set_with(&mut self, path: &str, body: &str, more: &str) {
        self.server.body(path, body);
        let kind = if self.kept.contains_key(path) { "updated" } else { "created" };
        self.kept.insert(path.to_owned(), body.to_owned());
        let facts = self.facts(path, body);
        self.log(path, kind, facts + more);
    }

    pub(crate) fn delete(&mut self, path: &str) {
        self.kept.remove(path);
        self.server.remove(path);
        self.log(path, "deleted", String::new());
    }

    /// Restarts with an empty Source, at the first time.
    pub(crate) fn restart(&mut self) {
        (self.clock, self.first_set) = (0, 0);
        self.changes.clear();
        self.kept.clear();
    }

    /// How many changes there were.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Removes the change sets before the current one.
    pub(crate) fn prune(&mut self) {
        self.first_set = self.changes.len() / self.shape.per_set;
        for set in 0..self.first_set {
            self.server.remove(&format!("/c/{set}.xml"));
        }
        self.publish();
    }

    /// Publishes the change sets: the current one, and the newest that is closed.
    pub(crate) fn publish(&self) {
        let open = self.changes.len() / self.shape.per_set;
        self.put("/c.xml", self.change_set(open));
        if let Some(closed) = open.checked_sub(1).filter(|closed| *closed >= self.first_set) {
            self.put(&format!("/c/{closed}.xml"), self.change_set(closed));
        }
    }

    /// A change set, as text.
    pub(crate) fn change_set(&self, number: usize) -> String {
        let begin = (number * self.shape.per_set).min(self.changes.len());
        let end = (begin + self.shape.per_set).min(self.changes.len());
        let mut changes = self.changes[begin..end].to_vec();
        let last = changes.last().map_or_else(|| self.now(), |change| change.time.clone());
        if self.shape.unordered {
            changes.reverse();
            let middle = changes.len() / 2;
            changes.rotate_left(middle);
        }
        if let (true, true, Some(first)) =
            (self.shape.late && number > 0, !changes.is_empty(), self.changes.first())
        {
            let time = format!("2025-01-01T00:{:02}:{:02}Z", number / 60, number % 60);
            changes.push(Change { time, kind: "updated", ..first.clone() });
        }
        let mut inside = if self.shape.modified { modified(&last) } else { String::new() };
        inside.push_str(&link(&format!("current {CHANGE_SET}"), "/c.xml"));
        inside.push_str(&self.set_links);
        if self.shape.prev && number > self.first_set {
            inside
                .push_str(&link(&format!("prev {CHANGE_SET}"), &format!("/c/{}.xml", number - 1)));
        }
        for Change { path, time, kind, more } in changes {
            let loc = self.server.url(&path);
            let time = match kind {
                "deleted" => format!("<expires>{time}</expires>"),
                kind => format!("<lastmod rs:type=\"{kind}\">{time}</lastmod>"),
            };
            let _ = writeln!(inside, "<url><loc>{loc}</loc>{time}{more}</url>");
        }
        document("urlset", if self.shape.typed { "rs:type=\"changeset\"" } else { "" }, &inside)
    }

    /// The time of the last change of a resource.
    pub(crate) fn time_of(&self, path: &str) -> &str {
        let mut changes = self.changes.iter().rev();
        changes.find(|change| change.path == path).map_or("2025-06-01", |change| &change.time)
    }

    /// The entry of a resource in the Sitemap.
    pub(crate) fn entry(&self, path: &str, more: &str) -> String {
        let (loc, time) = (self.server.url(path), self.time_of(path));
        let facts = self.facts(path, &self.kept[path]);
        format!("<url><loc>{loc}</loc><lastmod>{time}</lastmod>{facts}{more}</url>\n")
    }

    /// Publishes the Sitemap as of now.
    pub(crate) fn snapshot(&self) {
        let head = if self.shape.modified { modified(&self.now()) } else { String::new() };
        let head = head + &link(&format!("current {CHANGE_SET}"), "/c.xml") + &self.links;
        let mut parts = vec![String::new(); self.shape.sitemaps];
        for (number, path) in self.kept.keys().enumerate() {
            parts[number % self.shape.sitemaps].push_str(&self.entry(path, ""));
        }
        if self.shape.tombstones {
            let deleted = self.changes.iter().filter(|it| !self.kept.contains_key(&it.path));
            for change in deleted.filter(|change| change.kind == "deleted") {
                let (loc, time) = (self.server.url(&change.path), &change.time);
                let _ = writeln!(parts[0], "<url><loc>{loc}</loc><expires>{time}</expires></url>");
            }
        }
        if let [part] = parts.as_slice() {
            return self.put("/s.xml", document("urlset", "", &(head + part)));
        }
        let mut members = String::new();
        for (number, part) in parts.iter().enumerate() {
            let path = format!("/s/{number}.xml");
            let own = if self.shape.modified { modified(&self.now()) } else { String::new() };
            self.put(&path, document("urlset", "", &(own + part)));
            let loc = self.server.url(&path);
            let _ = writeln!(members, "<sitemap><loc>{loc}</loc></sitemap>");
        }
        self.put("/s.xml", document("sitemapindex", "", &(head + &members)));
    }

    /// A dump of all resources.
    pub(crate) fn dump(&self) -> Vec<u8> {
        self.part_of_dump(&modified(&self.now()), (0, 1))
    }

    /// One of several parts of a dump; `head` is the start of its manifest.
    pub(crate) fn part_of_dump(&self, head: &str, (part, parts): (usize, usize)) -> Vec<u8> {
        let (mut zip, mut entries) = (Zip::new(), String::new());
        let kept = self.kept.iter().enumerate();
        for (number, (path, body)) in kept.filter(|(number, _)| number % parts == part) {
            let name = format!("resources/{number}");
            zip.add(&name, body.as_bytes());
            entries.push_str(&self.entry(path, &format!("<rs:path>{name}</rs:path>")));
        }
        let inside = head.to_owned() + &entries;
        zip.add("manifest.xml", document("urlset", "", &inside).as_bytes());
        zip.finish()
    }

    /// The expected content of a copy.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let without_slash = |path: &String| path.trim_start_matches('/').to_owned();
        self.kept.iter().map(|(path, body)| (without_slash(path), body.clone())).collect()
    }
}
