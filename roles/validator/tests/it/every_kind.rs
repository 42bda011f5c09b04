//! Faults that documents of every kind may have are reported in each kind: tables of faults and of kinds.

use crate::server::{Answers, Server};
use crate::site::{Members, pack, packages};
use crate::{cases::inspect, emm, resourcesync_0_1, sdshare, site};
use abreast_validator::{Mode, check_document, text};

const BASE: &str = "http://h.example";

/// A place in a document where something is inserted.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Behind the start tag of the root.
    Head,
    /// Behind the first element that an entry has of its own.
    Entry,
    Between,
    /// Before the end tag of the root.
    End,
}
use Place::{Between, End, Entry, Head};

/// How the elements of a format are named.
struct Format {
    /// The end tag of the first child of an entry.
    first: &'static str,
    entries: &'static [&'static str],
}
const SITEMAPS: Format = Format { first: "</loc>", entries: &["</url>", "</sitemap>"] };
const ATOM: Format = Format { first: "</id>", entries: &["</entry>"] };

impl Format {
    /// The document with an insertion; `None` without an entry to have it.
    fn insert(&self, document: &str, place: Place, more: &str) -> Option<String> {
        let root = document.find("<urlset").or(document.find("<sitemapindex"));
        let root = root.or(document.find("<feed"))?;
        let begin = root + document[root..].find('>')? + 1;
        let end_of = |end: &str| document.find(end).map(|at| at + end.len());
        let at = match place {
            Head => begin,
            Entry => {
                let entry = document.find("<url>").or(document.find("<sitemap>"));
                let entry = entry.or(document.find("<entry>"))?;
                entry + document[entry..].find(self.first)? + self.first.len()
            }
            Between => self.entries.iter().find_map(|end| end_of(end))?,
            End => document.rfind("</")?,
        };
        let (before, after) = document.split_at(at);
        Some(format!("{before}{more}{after}"))
    }
}

/// Documents of the good Sources, by their paths.
fn kinds(answers: &Answers, paths: &[&str]) -> Vec<(String, String)> {
    let document = |path: &&str| {
        let body = answers[*path].body.clone();
        ((*path).to_owned(), String::from_utf8(body).unwrap())
    };
    paths.iter().map(document).collect()
}

fn of_1_1() -> Vec<(String, String)> {
    let mut all = kinds(
        &site::good(BASE),
        &[
            "/.well-known/resourcesync",
            "/caps.xml",
            "/rl.xml",
            "/rl1.xml",
            "/rd.xml",
            "/p1.xml",
            "/cl.xml",
            "/cl1.xml",
            "/cd.xml",
            "/c1.xml",
            "/rla.xml",
            "/cla.xml",
            "/notify/change",
            "/notify/framework",
        ],
    );
    let derived = [
        ("/rla.xml", "resourcelist-archive", "resourcedump-archive"),
        ("/cla.xml", "changelist-archive", "changedump-archive"),
        ("/rl.xml", "resourcelist", "resourcedump"),
        ("/cl.xml", "changelist", "changedump"),
        ("/rl.xml", "resourcelist", "description"),
    ];
    for (path, from, to) in derived {
        let (_, document) = all.iter().find(|(of, _)| of == path).unwrap();
        all.push((format!("{path} as {to}"), document.replace(from, to)));
    }
    all
}

fn of_0_1() -> Vec<(String, String)> {
    let paths = ["/sitemap.xml", "/list1.xml", "/changes/current.xml", "/changes/1.xml"];
    let mut all = kinds(&resourcesync_0_1::good(BASE), &paths);
    let manifest = resourcesync_0_1::members(BASE).remove(0).1;
    all.push(("manifest.xml".to_owned(), String::from_utf8(manifest).unwrap()));
    all
}

fn of_sdshare() -> Vec<(String, String)> {
    let paths = ["/sdshare", "/s", "/s/snapshots", "/s/chunks", "/s/fragments"];
    kinds(&sdshare::good(BASE), &paths)
}

/// Collects the documents in which a rule does not report a fault.
struct Table(Vec<String>);

impl Table {
    fn row(&mut self, rule: &str, kind: &str, fault: &str, document: &str) {
        let found = check_document(kind, document.as_bytes(), Mode::Normal);
        if !found.iter().any(|found| found.rule.id == rule) {
            self.0.push(format!("{rule}: {fault} in {kind}"));
        }
        // The same in pieces.
        abreast_validator::fuzz_property::document(document.as_bytes());
    }

    /// Each insertion at each of its places, in each kind of document.
    fn rows(
        &mut self,
        format: &Format,
        kinds: &[(String, String)],
        rule: &str,
        rows: &[(&[Place], &str)],
    ) {
        for (kind, document) in kinds {
            for (places, more) in rows {
                for place in *places {
                    let Some(document) = format.insert(document, *place, more) else {
                        self.0.push(format!("{kind} has no place {place:?}"));
                        continue;
                    };
                    self.row(rule, kind, &format!("{more} at {place:?}"), &document);
                }
            }
        }
    }

    fn assert_empty(self) {
        assert!(self.0.is_empty(), "{} rows\n{}", self.0.len(), self.0.join("\n"));
    }
}

const EVERYWHERE: &[Place] = &[Head, Entry, Between, End];
/// As a `<` that is lost leaves it.
const TEXTS: &[(&[Place], &str)] = &[(EVERYWHERE, "x"), (EVERYWHERE, "rs:md length=\"5\"/>")];
const LENGTHS: &[&str] = &["", "5 bytes", "-5", "+5", "5.0", "0x5", "18446744073709551616"];
const PRIORITIES: &[&str] = &["", "0", "+1", "-1", "1.0", "1000000", "high"];
const MEDIA_TYPES: &[&str] = &["", "text", "text/", "/plain", "a b/c", "text/plain; charset"];
const ENCODINGS: &[&str] = &["", "g zip", "gzip,,br", "gzip;q=1"];

#[test]
fn text_between_elements_is_found_in_every_kind() {
    let mut table = Table(Vec::new());
    for (format, kinds, rule) in [
        (SITEMAPS, of_1_1(), "RS-7-text"),
        (SITEMAPS, of_0_1(), "RS01-3.1-text"),
        (ATOM, of_sdshare(), "ATOM-2-text"),
    ] {
        table.rows(&format, &kinds, rule, TEXTS);
    }
    table.assert_empty();
}

/// The document with an attribute of the first `rs:md` of an entry, or of the document's own.
fn with_attribute(document: &str, of_entry: bool, name: &str, value: &str) -> String {
    let begin = document.find("<url>").or(document.find("<sitemap>")).unwrap();
    let begin = if of_entry { begin } else { 0 };
    let md = begin + document[begin..].find("<rs:md").unwrap();
    let end = md + document[md..].find("/>").unwrap();
    let own = format!(" {name}=\"");
    let mut tag = document[md..end].to_owned();
    if let Some(at) = tag.find(&own) {
        let value = at + own.len();
        let close = value + tag[value..].find('"').unwrap();
        tag.replace_range(at..=close, "");
    }
    format!("{}{tag}{own}{value}\"{}", &document[..md], &document[end..])
}

#[test]
fn values_of_attributes_are_checked_in_every_kind() {
    let mut table = Table(Vec::new());
    for (kind, document) in of_1_1() {
        for (name, values, rule) in [
            ("length", LENGTHS, "RS-7-length"),
            ("type", MEDIA_TYPES, "RS-7-type"),
            ("encoding", ENCODINGS, "RS-7-encoding"),
            ("hash", &["", "md5", "md5:zz"], "RS-7-hash"),
            ("pri", PRIORITIES, "RS-7-pri"),
        ] {
            for value in values {
                let fault = format!("{name}=\"{value}\"");
                if name != "pri" {
                    for of_entry in [true, false] {
                        let document = with_attribute(&document, of_entry, name, value);
                        table.row(rule, &kind, &fault, &document);
                    }
                }
                let link = format!("<rs:ln rel=\"via\" href=\"http://v.example/\" {fault}/>");
                for place in [Head, Entry] {
                    let document = SITEMAPS.insert(&document, place, &link).unwrap();
                    table.row(rule, &kind, &link, &document);
                }
            }
        }
    }
    table.assert_empty();
}

#[test]
fn values_of_0_1_are_checked_in_every_kind() {
    let mut table = Table(Vec::new());
    for (kind, document) in of_0_1() {
        for (name, values, rule) in [
            ("size", LENGTHS, "RS01-3.1.4-size"),
            ("mimetype", MEDIA_TYPES, "RS01-3.1.5-mimetype"),
            ("contentencoding", ENCODINGS, "RS01-3.1.6-encoding"),
        ] {
            // Of two elements the first one counts.
            for value in values {
                let more = format!("<rs:{name}>{value}</rs:{name}>");
                // An element without a value has a rule of its own.
                let rule = if value.is_empty() { "RS01-3.1-value" } else { rule };
                let document = SITEMAPS.insert(&document, Entry, &more).unwrap();
                table.row(rule, &kind, &more, &document);
            }
        }
    }
    table.assert_empty();
}

#[test]
fn media_types_of_links_are_checked_in_every_feed() {
    let mut table = Table(Vec::new());
    // An empty one counts as none.
    for value in MEDIA_TYPES.iter().filter(|value| !value.is_empty()) {
        let link = format!("<link rel=\"related\" href=\"http://v.example/\" type=\"{value}\"/>");
        let rows: &[(&[Place], &str)] = &[(&[Head, Entry], &link)];
        table.rows(&ATOM, &of_sdshare(), "ATOM-4.2.7.3-type", rows);
        for feed in ["emm10", "emm01", "iiif"] {
            for path in ["", "/page/1", "/activity/1"] {
                let path = format!("/{feed}{path}");
                let document = emm::good(BASE).remove(&path).unwrap().body;
                let document = String::from_utf8(document).unwrap();
                let link = format!(
                    "{{\"url\":{{\"type\":\"Link\",\"href\":\"http://v.example/\",\"mediaType\":\"{value}\"}},"
                );
                let whole = document.replacen('{', &link, 1);
                table.row("AS-4.2-link", &path, &link, &whole);
            }
        }
    }
    table.assert_empty();
}

#[test]
fn two_links_up_are_found_in_every_kind() {
    let mut table = Table(Vec::new());
    let two = |rel: &str| format!("<rs:ln rel=\"{rel}\" href=\"{BASE}/other.xml\"/>").repeat(2);
    let (up, index) = (two("up"), two("index"));
    let rows: &[(&[Place], &str)] = &[(&[Head], &up), (&[Head], &index)];
    table.rows(&SITEMAPS, &of_1_1(), "RS-6.2-up-once", rows);
    table.assert_empty();
}

#[test]
fn the_relation_previous_is_found_in_every_kind() {
    let mut table = Table(Vec::new());
    let previous = format!(
        "<xhtml:link rel=\"previous http://www.openarchives.org/rs/changeset\" href=\"{BASE}/0.xml\"/>"
    );
    let rows: &[(&[Place], &str)] = &[(&[Head], &previous)];
    table.rows(&SITEMAPS, &of_0_1(), "RS01-6.1-previous", rows);
    table.assert_empty();
}

/// The document without its entries.
fn without_entries(document: &str) -> String {
    let mut rest = document.to_owned();
    for (begin, end) in [("<url>", "</url>"), ("<sitemap>", "</sitemap>"), ("<entry>", "</entry>")]
    {
        while let Some(from) = rest.find(begin) {
            let to = from + rest[from..].find(end).unwrap() + end.len();
            rest.replace_range(from..to, "");
        }
    }
    rest
}

#[test]
fn a_source_without_sets_is_found_in_every_form() {
    let mut table = Table(Vec::new());
    let empty = |all: Vec<(String, String)>, names: &[&str]| {
        let is_it = move |(name, _): &(String, String)| names.contains(&name.as_str());
        let all = all.into_iter().filter(is_it);
        all.map(|(name, document)| (name, without_entries(&document))).collect::<Vec<_>>()
    };
    let of_1_1 = ["/.well-known/resourcesync", "/caps.xml", "/rl.xml as description"];
    for (kind, document) in empty(self::of_1_1(), &of_1_1) {
        table.row("RS-8-entries", &kind, "no entries", &document);
    }
    for (kind, document) in empty(of_0_1(), &["/sitemap.xml"]) {
        table.row("RS01-3.2-empty", &kind, "no Sitemaps", &document);
    }
    table.assert_empty();
    for (path, rule) in [("/sdshare", "SDS-5.1-empty"), ("/s", "SDS-5.1.2-two")] {
        let server = Server::start(|base| {
            let mut answers = sdshare::good(base);
            let answer = answers.get_mut(path).unwrap();
            let document = String::from_utf8(std::mem::take(&mut answer.body)).unwrap();
            answer.body = without_entries(&document).into_bytes();
            answers
        });
        let report = inspect(&server, "/sdshare", |_| {});
        let is_found = report.findings.iter().any(|found| found.rule.id == rule);
        assert!(is_found, "{path}\n{}", text(&report));
    }
}

/// Changes the manifest of a package.
type Edit<'a> = &'a dyn Fn(&str) -> String;

#[test]
fn faults_of_manifests_are_found_in_packages() {
    let insert = |place: Place, more: &'static str| {
        move |manifest: &str| SITEMAPS.insert(manifest, place, more).unwrap()
    };
    let edits: [(&str, &str, Edit<'_>); 9] = [
        ("RS-7-text", "RS01-3.1-text", &insert(Head, "x")),
        ("RS-7-text", "RS01-3.1-text", &insert(Entry, "x")),
        ("RS-7-text", "RS01-3.1-text", &insert(End, "x")),
        ("RS-7-length", "", &|manifest| with_attribute(manifest, true, "length", "-5")),
        ("RS-7-type", "", &|manifest| with_attribute(manifest, true, "type", "text")),
        ("RS-7-encoding", "", &|manifest| with_attribute(manifest, true, "encoding", "g zip")),
        (
            "RS-7-pri",
            "",
            &insert(Entry, "<rs:ln rel=\"via\" href=\"http://v.example/\" pri=\"0\"/>"),
        ),
        ("RS-6.2-up-once", "", &insert(Head, "<rs:ln rel=\"up\" href=\"http://v.example/\"/>")),
        ("", "RS01-3.1.4-size", &insert(Entry, "<rs:size>-5</rs:size>")),
    ];
    let edited = |mut members: Members, edit: Edit<'_>| {
        let manifest = String::from_utf8(members[0].1.clone()).unwrap();
        members[0].1 = edit(&manifest).into_bytes();
        pack(&members)
    };
    for (rule, rule_of_0_1, edit) in edits {
        for path in ["/p1.zip", "/c1.zip", "/dump.zip"] {
            let is_0_1 = path == "/dump.zip";
            let rule = if is_0_1 { rule_of_0_1 } else { rule };
            if rule.is_empty() {
                continue;
            }
            let server = Server::start(|base| {
                let (mut answers, members) = if is_0_1 {
                    (resourcesync_0_1::good(base), resourcesync_0_1::members(base))
                } else {
                    let all = packages(base).into_iter();
                    let own = all.clone().find(|(of, _)| *of == path).unwrap();
                    (site::good(base), own.1)
                };
                answers.get_mut(path).unwrap().body = edited(members, edit);
                answers
            });
            let start = if is_0_1 { "/sitemap.xml" } else { "/caps.xml" };
            let report = inspect(&server, start, |_| {});
            let is_it = |found: &&abreast_validator::Finding| {
                found.rule.id == rule && found.url.contains(path)
            };
            assert!(
                report.findings.iter().any(|found| is_it(&found)),
                "{path} {rule}\n{}",
                text(&report)
            );
        }
    }
}
