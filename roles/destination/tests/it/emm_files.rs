//! Copies of change feeds whose resources are files: they start with the Resource List to which the
//! Entry Point links.

use crate::copy::Copy;
use abreast_testkit::pages::{Answer, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const PROLOG: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                      xmlns:rs=\"http://www.openarchives.org/rs/terms/\">";

/// The content of the Source; times are seconds of a minute.
#[derive(Clone, Default)]
struct Data {
    files: BTreeMap<String, String>,
    /// Kind, name and time.
    changes: Vec<(&'static str, String, u32)>,
    /// The content of the Resource List, and its time.
    list: (Vec<String>, u32),
    /// Whether the list lacks its capability.
    is_plain: bool,
    /// The lists of an index, of which the second is missing.
    is_index: bool,
    /// Whether the list was removed.
    is_gone: bool,
}

#[derive(Clone)]
struct Files {
    server: Server,
    data: Arc<Mutex<Data>>,
}

fn time(second: u32) -> String {
    format!("2026-01-01T00:00:{second:02}Z")
}

impl Files {
    /// A Source with files that existed before the feed started.
    fn start(names: &[&str]) -> Self {
        let files = Self { server: Server::start(), data: Arc::default() };
        for name in names {
            files.data.lock().unwrap().files.insert((*name).to_owned(), format!("first {name}"));
        }
        files.make_list(1);
        let answering = files.clone();
        files.server.handler(move |target, _| {
            answer(&answering.server.base, &answering.data.lock().unwrap(), target)
        });
        files
    }

    fn make_list(&self, second: u32) {
        let mut data = self.data.lock().unwrap();
        data.list = (data.files.keys().cloned().collect(), second);
    }

    fn put(&self, name: &str, text: &str, second: u32) {
        let mut data = self.data.lock().unwrap();
        let kind = if data.files.contains_key(name) { "Update" } else { "Create" };
        data.files.insert(name.to_owned(), text.to_owned());
        data.changes.push((kind, name.to_owned(), second));
    }

    fn delete(&self, name: &str, second: u32) {
        let mut data = self.data.lock().unwrap();
        data.files.remove(name);
        data.changes.push(("Delete", name.to_owned(), second));
    }

    fn copy(&self) -> Copy {
        Copy::of(self.server.url("/feed"))
    }

    #[track_caller]
    fn assert_copied(&self, copy: &Copy) {
        assert_eq!(copy.texts(), self.data.lock().unwrap().files);
    }
}

fn answer(base: &str, data: &Data, target: &str) -> Option<Answer> {
    if let Some(name) = target.strip_prefix("/r/") {
        return data.files.get(name).map(|text| Answer::ok(text.clone()));
    }
    Some(match target {
        "/feed" => Answer::ok(entry(base).to_string()),
        "/feed/1" => Answer::ok(page(base, data).to_string()),
        "/list.xml" if data.is_gone => return None,
        "/list.xml" if data.is_index => {
            let index = PROLOG.replace("urlset", "sitemapindex");
            let md = format!("<rs:md capability=\"resourcelist\" at=\"{}\"/>", time(data.list.1));
            let members = format!(
                "<sitemap><loc>{base}/one.xml</loc></sitemap><sitemap><loc>{base}/two.xml</loc></sitemap>"
            );
            Answer::ok(format!("{index}{md}{members}</sitemapindex>"))
        }
        "/list.xml" | "/one.xml" => Answer::ok(list(base, data)),
        _ => return None,
    })
}

fn entry(base: &str) -> Value {
    json!({
        "@context": "https://emm-spec.org/1.0/context.json",
        "type": "OrderedCollection",
        "id": format!("{base}/feed"),
        "url": [
            {"type": "Link", "href": format!("{base}/about.html"), "mediaType": "text/html"},
            {"type": "Link", "href": format!("{base}/list.xml"), "mediaType": "application/xml; charset=utf-8"},
        ],
        "first": {"id": format!("{base}/feed/1"), "type": "OrderedCollectionPage"},
        "last": {"id": format!("{base}/feed/1"), "type": "OrderedCollectionPage"},
    })
}

fn page(base: &str, data: &Data) -> Value {
    let activity = |(kind, name, second): &(&str, String, u32)| {
        json!({
            "type": kind,
            "published": time(*second),
            // A type that does not show that it is a file, and a link that could be a description.
            "object": {"id": format!("{base}/r/{name}"), "type": "http://e.org/Treasure",
                "url": {"href": format!("{base}/r/{name}"), "mediaType": "text/turtle"}},
        })
    };
    let items: Vec<_> = data.changes.iter().map(activity).collect();
    json!({"type": "OrderedCollectionPage", "id": format!("{base}/feed/1"),
        "partOf": format!("{base}/feed"), "orderedItems": items})
}

fn list(base: &str, data: &Data) -> String {
    let (names, second) = &data.list;
    let entries: String =
        names.iter().map(|name| format!("<url><loc>{base}/r/{name}</loc></url>")).collect();
    let md = format!("<rs:md capability=\"resourcelist\" at=\"{}\"/>", time(*second));
    let md = if data.is_plain { String::new() } else { md };
    format!("{PROLOG}{md}{entries}</urlset>")
}

#[test]
fn files_from_before_the_feed_are_copied() {
    let source = Files::start(&["a", "b.ttl", "c"]);
    source.put("c", "changed", 2);
    let copy = source.copy();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("emm.partial")), (0, false), "{:?}", ran.reported);
    source.assert_copied(&copy);
    assert_eq!(copy.audit(true).exit_code, 0);

    source.put("b.ttl", "not a statement", 3);
    source.put("d", "new", 4);
    source.delete("a", 5);
    assert_ne!(copy.audit(false).exit_code, 0);
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    source.assert_copied(&copy);
    let asked = source.server.take_log();
    assert!(!asked.iter().any(|request| request.contains("list.xml")), "{asked:?}");
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn a_comparison_with_the_list_deletes_what_it_lacks() {
    let source = Files::start(&["a", "b", "c", "d"]);
    let mut copy = source.copy();
    assert_eq!(copy.try_run().exit(), 0);
    source.put("e", "new", 2);
    // Restored: files that were created meanwhile are missing, and the feed does not show that.
    source.data.lock().unwrap().files.remove("b");
    source.make_list(3);
    copy.options.baseline = true;
    assert_eq!(copy.try_run().exit(), 0);
    source.assert_copied(&copy);
}

#[test]
fn a_list_that_was_not_read_whole_deletes_nothing() {
    let source = Files::start(&["a", "b", "c"]);
    let mut copy = source.copy();
    assert_eq!(copy.try_run().exit(), 0);
    {
        let mut data = source.data.lock().unwrap();
        data.is_index = true;
        data.list.0.retain(|name| name != "b");
    }
    copy.options.baseline = true;
    assert_ne!(copy.try_run().exit(), 0);
    source.assert_copied(&copy);
    // The comparison is not over: the next run compares again, though nothing asks for it.
    copy.options.baseline = false;
    source.data.lock().unwrap().is_index = false;
    source.data.lock().unwrap().files.remove("b");
    source.make_list(4);
    assert_eq!(copy.try_run().exit(), 0);
    source.assert_copied(&copy);
}

#[test]
fn a_sitemap_of_pages_is_no_full_download() {
    let source = Files::start(&["a", "b"]);
    source.put("b", "changed", 2);
    source.data.lock().unwrap().is_plain = true;
    let ran = source.copy().try_run();
    assert_eq!(ran.count("emm.partial"), 1, "{:?}", ran.reported);
    let asked = source.server.take_log();
    assert!(!asked.iter().any(|request| request.contains("/r/a")), "{asked:?}");
}

#[test]
fn files_remain_files_when_their_list_is_gone() {
    let source = Files::start(&["a", "b.ttl"]);
    let mut copy = source.copy();
    assert_eq!(copy.try_run().exit(), 0);
    source.data.lock().unwrap().is_gone = true;
    source.put("b.ttl", "no statement", 2);
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("emm.partial")), (0, 1), "{:?}", ran.reported);
    source.assert_copied(&copy);
}
