//! Checks of a single document: deviations that the lenient parser accepts or refuses, as findings.

use super::codes::{message_of, rule_of, rule_of_code};
use crate::fetch::ResponseFacts;
use crate::fetch::archive::Member;
use crate::fetch::values::{self, NOT_UTF_8, a_moment_after};
use crate::report::{Findings, rules as r};
use crate::walk::sketch::{Listed, Sketch, hash};
use abreast_resourcesync::sitemap::named_again;
use abreast_resourcesync::v0_1::{
    CALLBACK_PROTOCOL, Change, DUMP, Entry, Head, Limits, Link, MIRROR, Meta, OAI_PMH_PROTOCOL,
    PARTIAL, Parser, Root, SUBJECT, SUBJECT_NAME, Step, Tolerance, XMPP_PROTOCOL,
};
use abreast_webtypes::{Precision, SyntaxError, Timestamp, excerpt};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

/// First bytes of a document, in which marks of 0.1 are searched.
pub(super) const BEGINNING: usize = 64 << 10;
/// Most entries that are read from a document.
const ENTRIES_MAX: u64 = 1_000_000;
/// Changes, members and Sitemaps of a document that are remembered.
const KEPT_MAX: usize = 200_000;
/// Categories of a document that are remembered.
const CATEGORIES_MAX: usize = 10_000;

/// Whether the first bytes of a document contain a feature that exists only in 0.1.
pub(crate) fn is_document(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(BEGINNING)];
    let mut parser = Parser::with_tolerance(Limits::default(), Tolerance::Lenient);
    parser.guess_encoding();
    parser.feed(beginning);
    if beginning.len() == bytes.len() {
        parser.finish();
    }
    let mut entry = Entry::default();
    let mut has_marks = false;
    loop {
        match parser.next(&mut entry) {
            Ok(Step::Head) => has_marks |= parser.head().is_some_and(head_has_marks),
            Ok(Step::Entry) => has_marks |= entry_has_marks(&entry),
            Ok(Step::NeedInput | Step::End) => return has_marks,
            Err(error) => {
                let is_type = error.code() == "rs.type";
                return error.code() != "rs.version" && (has_marks || is_type);
            }
        }
    }
}

fn head_has_marks(head: &Head) -> bool {
    head.change_set
        || head.modified.is_some()
        || head.links.iter().any(|link| link.protocol.is_some() || is_of_0_1(link))
}

fn entry_has_marks(entry: &Entry) -> bool {
    entry.change.is_some()
        || entry.protocol.is_some()
        || entry.path.is_some()
        || entry.size.is_some()
        || !entry.digests.is_empty()
        || categories(&entry.links, &entry.metas).next().is_some()
        || entry.links.iter().any(is_of_0_1)
}

fn is_of_0_1(link: &Link) -> bool {
    let own = [abreast_resourcesync::v0_1::CHANGE_SET, DUMP, MIRROR, PARTIAL];
    own.into_iter().any(|rel| link.has_rel(rel))
}

/// Categories of an entry or document, as URIs or words.
pub(super) fn categories<'a>(
    links: &'a [Link],
    metas: &'a [Meta],
) -> impl Iterator<Item = &'a str> {
    let links = links.iter().filter(|link| link.has_rel(SUBJECT) || link.has_rel(SUBJECT_NAME));
    let metas = metas.iter().filter(|meta| {
        [SUBJECT, SUBJECT_NAME].iter().any(|name| meta.name.eq_ignore_ascii_case(name))
    });
    links.map(|link| link.href.as_str()).chain(metas.map(|meta| meta.content.as_str()))
}

/// Facts about a document that are compared with other documents.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) head: Head,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Hash of the bytes of the document.
    pub(super) hash: u64,
    /// Error for which copies refuse the document.
    pub(super) refusal: Option<SyntaxError>,
    /// Whether the document was read to its end.
    pub(super) is_complete: bool,
    /// Whether the document was read to its end, and all its entries are remembered.
    pub(super) is_whole: bool,
    /// Times of the oldest and of the newest change.
    pub(super) oldest: Option<Timestamp>,
    pub(super) newest: Option<Timestamp>,
    /// Hashes of the changes, from URI and time.
    pub(super) changes: HashSet<u64>,
    /// Hashes of the URIs in a Sitemap or index.
    pub(super) uris: HashSet<u64>,
    /// Categories of the resources.
    pub(super) categories: BTreeSet<String>,
    /// Lists in an index.
    pub(super) lists: Vec<ListedSitemap>,
    /// Members of a dump according to its manifest.
    pub(super) members: HashMap<String, Member>,
    /// Line of the first change in a document other than a change set. A Sitemap may contain
    /// changes [rs-0.1 §3.1.2].
    pub(super) change_in_sitemap: Option<u64>,
    /// Line of the first entry that is not a change.
    pub(super) not_a_change: Option<u64>,
    /// Number of entries with addresses of other protocols [rs-0.1 §4.3.3].
    pub(super) of_others: u64,
    /// Whether an entry is a resource. Entries of an index are Sitemaps.
    pub(super) has_resources: bool,
    /// Hashes of the changed URIs, each with the first and the last change.
    pub(super) changed: HashMap<u64, Changed>,
}

/// Totals of the Sitemaps that were read so far.
#[derive(Debug)]
pub(super) struct Sitemaps {
    /// Hashes of the URIs of resources.
    pub(super) uris: HashSet<u64>,
    /// Number of entries and links with addresses of other protocols.
    of_others: u64,
    has_resources: bool,
    /// Whether every Sitemap was read to its end.
    pub(super) are_known: bool,
}

impl Sitemaps {
    /// Starts with the given document, which may be an index.
    pub(super) fn of(facts: &Facts) -> Self {
        let (uris, of_others, has_resources) = (HashSet::new(), 0, false);
        let mut sitemaps = Self { uris, of_others, has_resources, are_known: true };
        sitemaps.add(facts);
        sitemaps
    }

    pub(super) fn add(&mut self, facts: &Facts) {
        let is_other =
            |link: &&Link| link.protocol.as_deref().map(str::trim) == Some(OAI_PMH_PROTOCOL);
        let of_links = facts.head.links.iter().filter(is_other).count() as u64;
        self.of_others += facts.of_others + of_links;
        self.has_resources |= facts.has_resources;
        self.are_known &= facts.is_complete;
    }

    /// Number of addresses of other protocols, if the Sitemaps do not contain a resource.
    pub(super) fn only_others(&self) -> Option<u64> {
        let is_so = self.are_known && !self.has_resources && self.of_others > 0;
        is_so.then_some(self.of_others)
    }
}

/// First and last change of a resource in a change set.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) first: (Timestamp, Option<Change>),
    pub(super) last: (Timestamp, Option<Change>),
}

/// An entry of an index for a Sitemap.
#[derive(Debug)]
pub(super) struct ListedSitemap {
    pub(super) loc: String,
    pub(super) line: u64,
    pub(super) time: Option<Timestamp>,
    pub(super) categories: BTreeSet<String>,
}

/// Checks one document of ResourceSync 0.1.
pub(super) struct Checker {
    url: String,
    parser: Parser,
    entry: Entry,
    seed: u64,
    /// Resources that can be sampled.
    pub(super) listed: Sketch<Listed>,
    pub(super) facts: Facts,
    /// Whether the document is the manifest of a WARC file, in which `rs:path` may be the URI of a
    /// record.
    pub(super) names_records: bool,
    /// Whether a link to the document has the relation of change sets.
    is_called_change_set: bool,
    /// Whether the document is read as a change set although its root does not have `rs:type`.
    is_untyped: bool,
    /// The parser that copies use, until it refuses this document.
    reader: Option<Box<(Parser, Entry)>>,
    /// Times after this one are reported as in the future.
    now: Timestamp,
    is_broken: bool,
    is_complete: bool,
    is_cut: bool,
}

impl Checker {
    /// Checker for the manifest of a dump.
    pub(super) fn of_manifest(url: &str, max_bytes: u64, seed: u64) -> Self {
        let limits = Limits::of_manifest().with_bytes(max_bytes);
        Self::with_limits(url, (limits, limits), seed, 1)
    }

    /// Checker for the document at a URL. `sample` is the number of resources to sample.
    pub(super) fn new(url: &str, max_bytes: u64, seed: u64, sample: usize) -> Self {
        let of_copies = Limits::default().with_bytes(max_bytes);
        Self::with_limits(url, (of_copies.with_entries(ENTRIES_MAX), of_copies), seed, sample)
    }

    fn with_limits(
        url: &str,
        (limits, of_copies): (Limits, Limits),
        seed: u64,
        sample: usize,
    ) -> Self {
        Self {
            url: url.to_owned(),
            listed: Sketch::new(sample),
            parser: Parser::with_tolerance(limits, Tolerance::Lenient),
            entry: Entry::default(),
            seed,
            facts: Facts::default(),
            names_records: false,
            is_called_change_set: false,
            is_untyped: false,
            reader: Some(Box::new((Parser::new(of_copies), Entry::default()))),
            now: a_moment_after(SystemTime::now()),
            is_broken: false,
            is_complete: false,
            is_cut: false,
        }
    }

    /// Reads the document as a change set, because a link with that relation leads to it. The
    /// attribute of the root is only recommended [rs-0.1 §5.1].
    pub(super) fn called_change_set(mut self) -> Self {
        self.is_called_change_set = true;
        self
    }

    /// Uses `charset` of the answer's media type as encoding.
    pub(super) fn answered(&mut self, facts: &ResponseFacts) {
        self.parser.use_charset(facts.media_type());
        if let Some(reader) = &mut self.reader {
            reader.0.use_charset(facts.media_type());
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(super) fn feed(&mut self, bytes: &[u8], found: &mut Findings) {
        self.facts.bytes += bytes.len() as u64;
        if !self.is_broken {
            if let Some(reader) = &mut self.reader {
                reader.0.feed(bytes);
                self.read();
            }
            self.parser.feed(bytes);
            self.run(found);
        }
    }

    /// Parses the available bytes with the parser and the default options of copies.
    fn read(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        let (parser, entry) = &mut **reader;
        loop {
            match parser.next(entry) {
                Ok(Step::NeedInput) => return,
                Ok(Step::Head | Step::Entry) => {}
                Ok(Step::End) => break,
                Err(error) => {
                    self.facts.refusal = Some(error);
                    break;
                }
            }
        }
        self.reader = None;
    }

    pub(super) fn finish(&mut self, found: &mut Findings) {
        if !self.is_broken {
            if let Some(reader) = &mut self.reader {
                reader.0.finish();
                self.read();
            }
            self.parser.finish();
            self.run(found);
        }
        if !self.parser.is_utf_8() {
            found.add(&r::SITEMAP_UTF_8, (0, 0), || NOT_UTF_8.to_owned());
        }
        for finding in self.parser.findings() {
            let rule = rule_of(finding);
            found.add_counted(rule, (finding.line, 0), finding.count, || message_of(finding));
        }
        self.facts.is_complete = self.is_complete;
        self.facts.is_whole = self.is_complete && !self.is_cut;
        if let Some(error) = self.facts.refusal.as_ref().filter(|_| !self.is_broken) {
            found.refuse(&r::A_READ, error);
        }
        if self.is_complete && self.facts.head.root == Root::SitemapIndex && self.facts.entries == 0
        {
            found.add(&r::A_EMPTY, (0, 0), || "this index has no Sitemaps");
        }
        let paths = self.facts.members.len() as u64;
        if self.facts.is_whole && paths > 0 && paths < self.facts.entries {
            let message = || format!("{} of {} entries have `rs:path`", paths, self.facts.entries);
            found.add(&r::A_PATH_MISSING, (0, 0), message);
        }
        if let Some(head) = self.parser.head() {
            // At the end, the head also contains links that follow the entries.
            self.facts.head = head.clone();
            if self.is_untyped {
                // Copies do the same: unless a link of the head shows a change set, all entries
                // must be changes.
                let is_one = head.is_change_set(&self.url) || self.facts.not_a_change.is_none();
                self.facts.head.change_set = is_one;
                let message = "a change set without `rs:type`; read as a change set";
                if is_one {
                    found.add(&r::A_TYPE, (0, 0), || message.to_owned());
                }
            }
            check_head(head, found);
            if head.modified.is_some_and(|modified| modified.instant > self.now) {
                found.add(&r::A_FUTURE, (0, 0), || "`DCTERMS.modified` is in the future");
            }
        }
    }

    fn run(&mut self, found: &mut Findings) {
        loop {
            match self.parser.next(&mut self.entry) {
                Ok(Step::NeedInput) => return,
                Ok(Step::Head) => {
                    self.facts.head = self.parser.head().cloned().unwrap_or_default();
                    let head = &mut self.facts.head;
                    if !head.change_set
                        && head.root == Root::UrlSet
                        && (self.is_called_change_set || head.is_change_set(&self.url))
                    {
                        (head.change_set, self.is_untyped) = (true, true);
                    }
                }
                Ok(Step::Entry) => self.entry(found),
                Ok(Step::End) => {
                    self.is_complete = true;
                    return;
                }
                Err(error) => {
                    self.is_broken = true;
                    let place = (error.line(), error.column());
                    found.add(rule_of_code(error.code()), place, || match error.help() {
                        Some(help) => format!("{} ({help})", error.message()),
                        None => error.message().to_owned(),
                    });
                    return;
                }
            }
        }
    }

    fn entry(&mut self, found: &mut Findings) {
        let (entry, facts) = (&self.entry, &mut self.facts);
        facts.entries += 1;
        check_entry(&facts.head, entry, found);
        check_time(&facts.head, entry, self.now, found);
        if facts.head.root == Root::UrlSet && entry.change.is_none() && entry.protocol.is_none() {
            facts.not_a_change.get_or_insert(entry.line);
        }
        if facts.head.root == Root::UrlSet {
            facts.of_others += u64::from(entry.protocol.is_some());
            facts.has_resources |= entry.protocol.is_none();
        }
        let is_sitemap = !facts.head.change_set || self.is_untyped;
        if facts.head.root == Root::UrlSet && is_sitemap && entry.change.is_some() {
            facts.change_in_sitemap.get_or_insert(entry.line);
        }
        if let Some(path) = &entry.path {
            check_path(path, self.names_records, entry.line, found);
        }
        for category in categories(&entry.links, &entry.metas) {
            if facts.categories.len() < CATEGORIES_MAX {
                facts.categories.insert(category.to_owned());
            } else {
                self.is_cut = true;
            }
        }
        let place = (entry.line, 0);
        if facts.head.root == Root::SitemapIndex && facts.lists.len() < KEPT_MAX {
            facts.lists.push(ListedSitemap {
                loc: entry.loc.clone(),
                line: entry.line,
                time: entry.time.map(|time| time.instant),
                categories: categories(&entry.links, &entry.metas).map(str::to_owned).collect(),
            });
        }
        if facts.head.change_set
            && let Some(time) = entry.time.map(|time| time.instant)
        {
            if facts.changed.len() < KEPT_MAX {
                let own = (time, entry.change);
                let uri = hash(self.seed, &entry.loc);
                let changed = facts.changed.entry(uri).or_insert(Changed { first: own, last: own });
                if time < changed.first.0 {
                    changed.first = own;
                }
                if time > changed.last.0 {
                    changed.last = own;
                }
            }
            facts.oldest = Some(facts.oldest.map_or(time, |oldest| oldest.min(time)));
            facts.newest = Some(facts.newest.map_or(time, |newest| newest.max(time)));
            let own = hash(self.seed ^ time.as_micros() as u64, &entry.loc);
            if facts.changes.len() >= KEPT_MAX {
                self.is_cut = true;
            } else if !facts.changes.insert(own) {
                found.add(&r::A_IDENTITY, place, || {
                    format!("a second change of {} at {time}", excerpt(&entry.loc))
                });
            }
        }
        if !facts.head.change_set && entry.path.is_none() && facts.uris.len() < KEPT_MAX {
            let uri = hash(self.seed, &entry.loc);
            if !facts.uris.insert(uri) {
                let is_index = facts.head.root == Root::SitemapIndex;
                let message = || {
                    if is_index {
                        named_again(&entry.loc)
                    } else {
                        format!("{} is listed already", excerpt(&entry.loc))
                    }
                };
                found.add(&r::A_ONCE, place, message);
            }
        }
        let is_resource = entry.change != Some(Change::Deleted) && entry.protocol.is_none();
        if !facts.head.change_set && facts.head.root == Root::UrlSet && is_resource {
            self.listed.entry(hash(self.seed, &entry.loc), || Listed {
                uri: entry.loc.clone(),
                digests: entry.digests.clone(),
                length: entry.size,
                media_type: entry.media_type.clone().unwrap_or_default(),
                encoding: entry.encoding.clone().unwrap_or_default(),
                lastmod: entry.time,
                at: facts.head.modified,
                document: self.url.clone(),
                place,
            });
        }
        if let Some(path) = &entry.path {
            if facts.members.len() >= KEPT_MAX {
                self.is_cut = true;
                return;
            }
            let (loc, digests, length) = (entry.loc.clone(), entry.digests.clone(), entry.size);
            let member = Member { loc, digests, length, place: (entry.line, 0) };
            if facts.members.insert(path.clone(), member).is_some() {
                found.add(&r::A_PATH, place, || format!("a second entry for {}", excerpt(path)));
            }
        }
    }
}

fn check_head(head: &Head, found: &mut Findings) {
    if head.modified.is_none() {
        found.add(&r::A_MODIFIED, (0, 0), || "there is no `DCTERMS.modified`");
    }
    for link in &head.links {
        let is_xmpp = link.protocol.as_deref() == Some(XMPP_PROTOCOL);
        let leads_to_xmpp = scheme_is(&link.href, &["xmpp"]);
        let has_node = link.pubsub_node.is_some() || link.href.contains("node=");
        if is_xmpp != leads_to_xmpp && (is_xmpp || link.protocol.is_none()) || is_xmpp && !has_node
        {
            found.add(&r::A_XMPP, (0, 0), || format!("the link leads to {}", excerpt(&link.href)));
        }
        if link.protocol.as_deref() == Some(CALLBACK_PROTOCOL)
            && scheme_is_other(&link.href, &["http", "https"])
        {
            let message = || format!("the link leads to {}", excerpt(&link.href));
            found.add(&r::A_CALLBACK, (0, 0), message);
        }
        if link.has_rel(PARTIAL) || link.has_rel(MIRROR) {
            found.add(&r::A_PLACE, (0, 0), || format!("`{}` of the document", excerpt(&link.rel)));
        }
    }
}

/// Reports times that are in the future, after the time of the change set, or too coarse for the
/// order of changes.
fn check_time(head: &Head, entry: &Entry, now: Timestamp, found: &mut Findings) {
    let place = (entry.line, 0);
    let Some(time) = entry.time else { return };
    // For a deletion, the parser reports a time in the future.
    if time.instant > now && entry.change != Some(Change::Deleted) {
        let message = || format!("{} has the time {}", excerpt(&entry.loc), time.instant);
        found.add(&r::A_FUTURE, place, message);
    }
    if !head.change_set {
        return;
    }
    if let Some(modified) = head.modified.filter(|modified| values::is_before(*modified, time)) {
        let message = || {
            let (time, modified) = (time.instant, modified.instant);
            format!("{} changed at {time}, and the set is of {modified}", excerpt(&entry.loc))
        };
        found.add(&r::A_FUTURE, place, message);
    }
    if time.precision < Precision::Minute {
        found.add(&r::A_CHANGE_TIME, place, || format!("{} has a date only", excerpt(&entry.loc)));
    }
}

fn check_path(path: &str, names_records: bool, line: u64, found: &mut Findings) {
    let is_unsafe = path.contains('\\')
        || path.split('/').any(|segment| matches!(segment, "" | "." | ".."))
        || path == "manifest.xml";
    if is_unsafe && !(names_records && values::uri_fault(path).is_none()) {
        found.add(&r::A_PATH, (line, 0), || format!("`rs:path` is \"{}\"", excerpt(path)));
    }
}

fn check_entry(head: &Head, entry: &Entry, found: &mut Findings) {
    let place = (entry.line, 0);
    if let Some(fault) = values::uri_fault(&entry.loc) {
        found.add(&r::A_URI, place, || format!("`loc` \"{}\" {fault}", excerpt(&entry.loc)));
    }
    // A resource at an address of another protocol does not have a time [rs-0.1 §4.3.3].
    if entry.time.is_none() && entry.protocol.is_none() {
        found.add(&r::A_TIME, place, || format!("{} has no time", excerpt(&entry.loc)));
    }
    if let Some(media_type) =
        entry.media_type.as_deref().filter(|text| !values::is_media_type(text))
    {
        let message = || format!("`rs:mimetype` is \"{}\"", excerpt(media_type));
        found.add(&r::A_MIMETYPE, place, message);
    }
    if let Some(encoding) = entry.encoding.as_deref().filter(|text| !values::is_encoding(text)) {
        let message = || format!("`rs:contentencoding` is \"{}\"", excerpt(encoding));
        found.add(&r::A_ENCODING, place, message);
    }
    if let Some(length) = values::too_many_characters(&entry.loc) {
        found.add(&r::SITEMAP_LOC, place, || format!("`loc` has {length} characters"));
    }
    for link in &entry.links {
        let partial = link.has_rel(PARTIAL);
        if partial && (!head.change_set || entry.change == Some(Change::Deleted)) {
            found.add(&r::A_PLACE, place, || format!("partial content of {}", excerpt(&entry.loc)));
        } else if partial && link.protocol.is_none() {
            let message = || format!("{} has no `rs:protocol`", excerpt(&link.href));
            found.add(&r::A_PARTIAL, place, message);
        } else if link.has_rel(MIRROR) && !link.has_rel("alternate") {
            found.add(&r::A_MIRROR, place, || format!("`rel` is \"{}\"", excerpt(&link.rel)));
        }
    }
}

fn scheme_is(href: &str, schemes: &[&str]) -> bool {
    let scheme = href.split_once(':').map_or("", |(scheme, _)| scheme);
    schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Whether an address is absolute and has another scheme.
fn scheme_is_other(href: &str, schemes: &[&str]) -> bool {
    href.contains(':') && !scheme_is(href, schemes)
}
