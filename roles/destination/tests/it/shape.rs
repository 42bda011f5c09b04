//! Documents of a wrong shape: a document that could make a list seem shorter, or a change seem
//! different, is refused, and nothing is deleted or created because of it; other oddities are
//! reported.

mod emm;
mod resourcesync;
mod resourcesync_0_1;
mod scenes;
mod sdshare;

use crate::copy::{Copy, Ran};
use abreast_destination::Dumps;
use abreast_testkit::documents::{self, BEGIN};
use abreast_testkit::pages::Server;
use scenes::{Edit, Family as F, Read, SCENES, Scene};
use serde_json::{Value, json};

const RS: &str = "http://www.openarchives.org/rs/terms/";
const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
const ATOM: &str = "http://www.w3.org/2005/Atom";
const SDSHARE: &str = "http://www.sdshare.org/2012/core/";

/// An oddity: the kinds of documents that have it, how it is made, and the code that it has.
struct Odd {
    families: &'static [F],
    name: &'static str,
    edit: Box<dyn Fn(String) -> String>,
    code: &'static str,
}

fn odd(
    families: &'static [F],
    name: &'static str,
    edit: impl Fn(String) -> String + 'static,
    code: &'static str,
) -> Odd {
    Odd { families, name, edit: Box::new(edit), code }
}

/// The outcome of a run with the second version.
struct Second {
    ran: Ran,
    /// The files after the first run, and after this one.
    before: Vec<String>,
    after: Vec<String>,
}

impl Second {
    /// Nothing was deleted, and only resources of the second version were created.
    fn is_safe(&self) -> bool {
        let is_kept = |name: &String| self.after.contains(name);
        let is_right = |name: &String| name == "e" || self.before.contains(name);
        self.before.iter().all(is_kept) && self.after.iter().all(is_right)
    }

    fn has(&self, code: &str) -> bool {
        self.ran.code() == code || self.ran.has(code)
    }
}

/// A run with the first version, then another one with the second.
fn run_twice(scene: Scene, edit: Edit<'_>) -> Second {
    let server = Server::start();
    let begin = || {
        let mut copy = Copy::of(server.url(scene.address));
        copy.options.base = Some(server.url("/"));
        copy.options.dumps = Dumps::Always;
        copy
    };
    scene.begin(&server);
    let mut copy = begin();
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{}: {} {:?}", scene.name, ran.code(), ran.reported);
    let mut before = copy.paths();
    assert_eq!(before, ["a", "b", "c", "d"], "{}", scene.name);
    scene.go_on(&server, edit);
    match scene.read {
        Read::Always => {}
        Read::ByComparisons => copy.options.baseline = true,
        Read::ByNewCopies => {
            copy = begin();
            before.clear();
        }
    }
    let ran = copy.try_run();
    let mut after = copy.paths();
    if scene.read == Read::ByNewCopies && after == ["a", "b", "c", "d"] {
        // The list that the changes are about is right.
        after.clear();
    }
    Second { ran, before, after }
}

/// Runs each scene of the families of each oddity, and judges the outcome.
fn each(table: &[Odd], is_right: impl Fn(&Odd, &Second) -> bool) {
    let mut wrong = Vec::new();
    for odd in table {
        for scene in SCENES.iter().filter(|scene| odd.families.contains(&scene.family)) {
            let edit = |text: String| {
                let edited = (odd.edit)(text.clone());
                assert_ne!(edited, text, "{}: no change of a {}", odd.name, scene.name);
                edited
            };
            let second = run_twice(*scene, &edit);
            if !is_right(odd, &second) {
                let Second { ran, after, .. } = second;
                let (exit, code, codes) = (ran.exit(), ran.code(), &ran.codes);
                wrong.push(format!(
                    "{}: {}: {exit} {code} {codes:?} {after:?}",
                    scene.name, odd.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn right_documents_are_followed() {
    for scene in SCENES {
        let Second { ran, after, .. } = run_twice(*scene, &|text| text);
        assert_eq!(ran.exit(), 0, "{}: {} {:?}", scene.name, ran.code(), ran.reported);
        assert_eq!(after, ["a", "c", "d", "e"], "{}", scene.name);
    }
}

const NEW: &[F] = &[F::Members, F::Resources, F::Changes];
const OLD: &[F] = &[F::OldSitemap, F::OldChanges];
const XML: &[F] = &[F::Members, F::Resources, F::Changes, F::Sitemap, F::OldSitemap, F::OldChanges];
const FEEDS: &[F] = &[F::Feeds, F::Fragments];
const JSON: &[F] = &[F::EntryPoint, F::ChangeSet];

/// With one text in the place of another.
fn with(from: &'static str, to: &'static str) -> impl Fn(String) -> String {
    move |text| text.replace(from, to)
}

/// Puts the last entry inside the previous one.
fn nested(text: &str, element: &str) -> String {
    let end = format!("</{element}>");
    let places: Vec<usize> = text.match_indices(&end).map(|(place, _)| place).collect();
    let [.., before, last] = places[..] else { return nested_alone(text, element) };
    let mut out = text.to_owned();
    out.insert_str(last, &end);
    out.replace_range(before..before + end.len(), "");
    out
}

/// With the only entry inside another one.
fn nested_alone(text: &str, element: &str) -> String {
    text.replace(&format!("<{element}>"), &format!("<{element}><loc>http://h/x</loc><{element}>"))
        .replace(&format!("</{element}>"), &format!("</{element}></{element}>"))
}

fn element_of(text: &str) -> &'static str {
    if text.contains("<sitemap>") { "sitemap" } else { "url" }
}

#[test]
fn documents_of_a_wrong_shape_are_refused() {
    let table = [
        odd(
            NEW,
            "no final slash",
            with(RS, "http://www.openarchives.org/rs/terms"),
            "rs.namespace",
        ),
        odd(NEW, "https", with(RS, "https://www.openarchives.org/rs/terms/"), "rs.namespace"),
        odd(NEW, "other namespace", with(RS, "urn:example:rs"), "rs.namespace"),
        odd(NEW, "no namespace", with("<rs:md", "<md"), "rs.namespace"),
        odd(
            OLD,
            "no final slash",
            with(RS, "http://www.openarchives.org/rs/terms"),
            "rs.namespace",
        ),
        odd(OLD, "https", with(RS, "https://www.openarchives.org/rs/terms/"), "rs.namespace"),
        odd(&[F::OldChanges], "other namespace", with(RS, "urn:example:rs"), "rs.namespace"),
        odd(
            XML,
            "sitemap namespace with a slash",
            with(SITEMAP, "http://www.sitemaps.org/schemas/sitemap/0.9/"),
            "rs.root",
        ),
        odd(
            XML,
            "sitemap namespace with https",
            with(SITEMAP, "https://www.sitemaps.org/schemas/sitemap/0.9"),
            "rs.root",
        ),
        odd(
            XML,
            "namespace of entries",
            |text: String| {
                let element = element_of(&text);
                text.replace(&format!("<{element}>"), &format!("<{element} xmlns=\"{SITEMAP}/\">"))
            },
            "rs.namespace",
        ),
        odd(
            XML,
            "entries of no namespace",
            |text: String| {
                let element = element_of(&text);
                text.replace(&format!("<{element}>"), &format!("<{element} xmlns=\"\">"))
            },
            "rs.namespace",
        ),
        odd(
            XML,
            "nested entry",
            |text: String| {
                let element = element_of(&text);
                nested(&text, element)
            },
            "rs.nested",
        ),
        odd(
            XML,
            "entries in a wrapper",
            |text: String| {
                let element = element_of(&text);
                text.replacen(&format!("<{element}>"), &format!("<list><{element}>"), 1)
                    .replace("</urlset>", "</list></urlset>")
                    .replace("</sitemapindex>", "</list></sitemapindex>")
            },
            "rs.nested",
        ),
        odd(XML, "two `loc`", with("</loc>", "</loc><loc>http://example.org/x</loc>"), "rs.loc"),
        odd(&[F::Changes], "change of no kind", with("change=\"deleted\"", ""), "rs.change"),
        odd(
            &[F::Changes],
            "change in letters of another case",
            with("\"deleted\"", "\"Deleted\""),
            "rs.change",
        ),
        odd(
            &[F::Changes],
            "change in another namespace",
            with("change=\"deleted\"", "x:change=\"deleted\" xmlns:x=\"urn:x\""),
            "rs.change",
        ),
        odd(
            &[F::Resources],
            "deleted resource in a list",
            with("length=\"5\"", "length=\"5\" change=\"deleted\""),
            "rs.change",
        ),
        odd(
            &[F::Resources, F::Changes, F::Sitemap],
            "two `rs:md`",
            with("/></url>", "/><rs:md hash=\"md5:x\"/></url>"),
            "rs.md",
        ),
        odd(
            &[F::Resources, F::Changes, F::Sitemap],
            "length beyond 2^63",
            with("length=\"5\"", "length=\"9223372036854775808\""),
            "rs.length",
        ),
        odd(
            &[F::Resources, F::Changes, F::Sitemap],
            "two times",
            with("</lastmod>", "</lastmod><lastmod>2027-01-01</lastmod>"),
            "rs.datetime",
        ),
        odd(
            OLD,
            "two times",
            with("</lastmod>", "</lastmod><lastmod>2027-01-01</lastmod>"),
            "rs.change",
        ),
        odd(
            OLD,
            "links of a misspelt namespace",
            with("http://www.w3.org/1999/xhtml", "http://www.w3.org/1999/xhtml/"),
            "rs.namespace",
        ),
        odd(
            &[F::OldChanges],
            "deletion in a misspelt namespace",
            with("<expires>", "<expires xmlns=\"https://www.sitemaps.org/schemas/sitemap/0.9\">"),
            "rs.namespace",
        ),
    ];
    each(&table, is_refused);
}

#[test]
fn feeds_of_a_wrong_shape_are_refused() {
    let table = [
        odd(FEEDS, "Atom with a slash", with(ATOM, "http://www.w3.org/2005/Atom/"), "atom.root"),
        odd(FEEDS, "Atom with https", with(ATOM, "https://www.w3.org/2005/Atom"), "atom.root"),
        odd(
            FEEDS,
            "SDShare with https",
            with(SDSHARE, "https://www.sdshare.org/2012/core/"),
            "sdshare.namespace",
        ),
        odd(
            FEEDS,
            "SDShare of another year",
            with(SDSHARE, "http://www.sdshare.org/2013/core/"),
            "sdshare.namespace",
        ),
        odd(
            &[F::Fragments],
            "resource of no namespace",
            with("s:resource", "resource"),
            "sdshare.namespace",
        ),
        odd(
            FEEDS,
            "namespace of entries",
            with("<entry>", "<entry xmlns=\"http://www.w3.org/2005/Atom/\">"),
            "atom.namespace",
        ),
        odd(
            FEEDS,
            "entries of no namespace",
            with("<entry>", "<entry xmlns=\"\">"),
            "atom.namespace",
        ),
        odd(FEEDS, "nested entry", |text: String| nested(&text, "entry"), "atom.nested"),
        odd(
            FEEDS,
            "entries in a wrapper",
            |text: String| {
                text.replacen("<entry>", "<entries><entry>", 1)
                    .replace("</feed>", "</entries></feed>")
            },
            "atom.nested",
        ),
        odd(
            FEEDS,
            "two times",
            with("</updated>", "</updated><updated>2026-01-09T00:00:00Z</updated>"),
            "atom.updated",
        ),
        odd(
            FEEDS,
            "a next page that leads nowhere",
            with("</feed>", "<link rel=\"next\"/></feed>"),
            "atom.paging",
        ),
        odd(
            FEEDS,
            "two next pages",
            with(
                "</feed>",
                "<link rel=\"next\" href=\"/x\"/><link rel=\"next\" href=\"/y\"/></feed>",
            ),
            "atom.paging",
        ),
    ];
    each(&table, is_refused);
}

#[test]
fn streams_of_a_wrong_shape_are_refused() {
    const PAGE: &[F] = &[F::ChangeSet];
    const ENTRY: &[F] = &[F::EntryPoint];
    let named = |name: &'static str| {
        move |text: String| text.replace("\"orderedItems\"", &format!("\"{name}\""))
    };
    let ways = |prefix: &'static str| {
        move |text: String| {
            text.replace("\"first\"", &format!("\"{prefix}first\""))
                .replace("\"last\"", &format!("\"{prefix}last\""))
        }
    };
    // The edits of the items.
    let items = |change: fn(Vec<Value>) -> Value| {
        move |text: String| {
            let mut page: Value = serde_json::from_str(&text).unwrap();
            page["orderedItems"] = change(page["orderedItems"].as_array().unwrap().clone());
            page.to_string()
        }
    };
    let table = [
        odd(PAGE, "orderedItems in small letters", named("ordereditems"), "emm.shape"),
        odd(PAGE, "orderedItems with a line", named("ordered_items"), "emm.shape"),
        odd(PAGE, "orderedItems of one", named("orderedItem"), "emm.shape"),
        odd(PAGE, "as:orderedItems", named("as:orderedItems"), "emm.shape"),
        odd(
            PAGE,
            "an IRI",
            named("https://www.w3.org/ns/activitystreams#orderedItems"),
            "emm.shape",
        ),
        odd(ENTRY, "as:first", ways("as:"), "emm.shape"),
        odd(ENTRY, "an IRI", ways("http://www.w3.org/ns/activitystreams#"), "emm.shape"),
        odd(ENTRY, "First", |text: String| text.replace("\"first\"", "\"First\""), "emm.shape"),
        odd(
            ENTRY,
            "first without a URL",
            |text: String| text.replacen("\"first\":{", "\"first\":{\"was\":1},\"x\":{", 1),
            "emm.shape",
        ),
        odd(
            PAGE,
            "next without a URL",
            |text: String| text.replacen('{', "{\"next\":5,", 1),
            "emm.shape",
        ),
        odd(
            JSON,
            "type with a letter more",
            |text: String| text.replace("\"OrderedCollection", "\"OrderedCollections"),
            "emm.type",
        ),
        odd(
            JSON,
            "a member twice",
            |text: String| {
                text.replace(
                    "\"type\":\"OrderedCollection",
                    "\"type\":\"Collection\",\"type\":\"OrderedCollection",
                )
            },
            "emm.json",
        ),
        odd(JSON, "a graph", |text: String| format!("{{\"@graph\":[{text}]}}"), "emm.type"),
        odd(
            PAGE,
            "numbered items",
            items(|items| {
                items
                    .into_iter()
                    .enumerate()
                    .map(|(number, item)| (number.to_string(), item))
                    .collect()
            }),
            "emm.shape",
        ),
        odd(PAGE, "a list of JSON-LD", items(|items| json!({"@list": items})), "emm.shape"),
        odd(
            PAGE,
            "bare URIs",
            items(|items| items.iter().map(|item| item["id"].clone()).collect()),
            "emm.shape",
        ),
        odd(
            PAGE,
            "one bare URI",
            items(|mut items| {
                items[5] = items[5]["id"].clone();
                items.into()
            }),
            "emm.shape",
        ),
        odd(
            PAGE,
            "references",
            items(|items| items.iter().map(|item| json!({"id": item["id"]})).collect()),
            "emm.shape",
        ),
        odd(
            PAGE,
            "other objects",
            items(|items| {
                items.iter().map(|item| json!({"id": item["id"], "type": "Manifest"})).collect()
            }),
            "emm.shape",
        ),
        odd(
            PAGE,
            "an activity in an activity",
            items(|items| {
                items.into_iter().map(|item| json!({"type": "Create", "object": item})).collect()
            }),
            "emm.shape",
        ),
        odd(
            PAGE,
            "activities of an activity",
            items(|items| json!([{"type": "Update", "object": "/a", "items": items}])),
            "emm.shape",
        ),
        odd(
            PAGE,
            "members with a prefix",
            |text: String| {
                text.replace("\"object\"", "\"as:object\"")
                    .replace("\"published\"", "\"as:published\"")
            },
            "emm.shape",
        ),
        odd(
            PAGE,
            "an activity with a member twice",
            |text: String| {
                text.replace("\"type\":\"Delete\"", "\"type\":\"Create\",\"type\":\"Delete\"")
            },
            "emm.json",
        ),
    ];
    each(&table, is_refused);
}

fn is_refused(odd: &Odd, second: &Second) -> bool {
    second.is_safe() && second.ran.exit() != 0 && second.has(odd.code)
}

#[test]
fn oddities_that_lose_nothing_are_reported() {
    const LISTS: &[F] = &[F::Resources, F::Changes, F::Sitemap];
    let table = [
        odd(
            &[F::Changes],
            "blanks around a change",
            with("\"deleted\"", "\" deleted \""),
            "rs.space",
        ),
        odd(&[F::Changes], "no `from`", with("from=\"2026-01-01T00:00:00Z\"", ""), "rs.no-from"),
        odd(&[F::Resources], "no `at`", with("at=\"2026-01-01T02:00:00Z\"", ""), "rs.no-at"),
        odd(
            &[F::Resources],
            "`change` in a list",
            with("length=\"5\"", "length=\"5\" change=\"updated\""),
            "rs.change-ignored",
        ),
        odd(
            LISTS,
            "the same time twice",
            with("</lastmod>", "</lastmod><lastmod>2025-06-01T00:00:00Z</lastmod>"),
            "rs.repeated",
        ),
        odd(
            &[F::Resources, F::Changes],
            "a link to nowhere",
            with("</loc>", "</loc><rs:ln rel=\"describedby\"/>"),
            "rs.link",
        ),
        odd(
            &[F::Resources, F::Changes],
            "a link of no relation",
            with("</loc>", "</loc><rs:ln href=\"/x\"/>"),
            "rs.link",
        ),
        odd(
            OLD,
            "a link to nowhere",
            with("</loc>", "</loc><xhtml:link rel=\"describedby\"/>"),
            "rs.link",
        ),
        odd(
            &[F::OldChanges],
            "blanks around a type",
            with("rs:type=\"created\"", "rs:type=\" created \""),
            "rs.space",
        ),
        odd(
            &[F::OldChanges],
            "blanks around the type of the root",
            with("rs:type=\"changeset\"", "rs:type=\" changeset\""),
            "rs.space",
        ),
        odd(FEEDS, "two ids", with("</id>", "</id><id>urn:x:second</id>"), "atom.id"),
        odd(
            FEEDS,
            "the same time twice",
            with(
                "02:00:00Z</updated>",
                "02:00:00Z</updated><updated>2026-01-01T02:00:00Z</updated>",
            ),
            "atom.updated",
        ),
        odd(
            JSON,
            "another context",
            |text: String| {
                text.replace("https://www.w3.org/ns/activitystreams", "https://schema.org/")
                    .replace("https://emm-spec.org/1.0/context.json", "https://schema.org/docs")
            },
            "emm.context",
        ),
        odd(
            &[F::ChangeSet],
            "types in small letters",
            |text: String| {
                text.replace("\"Delete\"", "\"delete\"").replace("\"Create\"", "\"as:CREATE\"")
            },
            "emm.type-case",
        ),
        odd(
            OLD,
            "a length beyond 2^63",
            with("<rs:size>5<", "<rs:size>9223372036854775808<"),
            "rs.length",
        ),
    ];
    each(&table, |odd, second| {
        second.after == ["a", "c", "d", "e"] && second.ran.exit() == 0 && second.has(odd.code)
    });
}

#[test]
fn lengths_that_add_up_beyond_2_63_block_nothing() {
    let server = Server::start();
    for name in ["/a", "/b", "/c"] {
        server.body(name, "hello");
    }
    let list = |length: &str| {
        let entries: String = ["/a", "/b", "/c"]
            .iter()
            .map(|name| {
                let own = documents::entry(&server.url(name), b"hello", "");
                own.replace("length=\"5\"", &format!("length=\"{length}\""))
            })
            .collect();
        let md = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
        server.body("/list.xml", documents::document("urlset", &md, &entries));
    };
    list("9223372036854775807");
    let mut copy = Copy::of(server.url("/list.xml"));
    for dumps in [Dumps::Never, Dumps::Always] {
        copy.options.dumps = dumps;
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), ran.count("fixity.mismatch")),
            (3, 3),
            "{} {:?}",
            ran.code(),
            ran.reported
        );
    }
    list("5");
    assert_eq!((copy.try_run().exit(), copy.paths().len()), (0, 3));
}
