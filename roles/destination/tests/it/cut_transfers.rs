//! An interrupted transfer of a document, and a retry that receives another version: the first
//! version does not count at all, in documents of every kind.

use crate::copy::{Copy, Ran};
use crate::rdf::{canonical, quads};
use crate::rs01_source::{self, CHANGE_SET};
use crate::sdshare_source::ATOM;
use abreast_destination::{NQuadsOptions, SinkOptions};
use abreast_sdshare::CATEGORIES;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{BEGIN, capability_list, document};
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::zip::Zip;
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Requests for the document of which each one breaks off in turn.
const CUTS: usize = 4;
/// Bytes that are missing: the end tags, so that all entries come.
const SHORT: usize = 3;

type Pages = Vec<(&'static str, Vec<u8>)>;

/// A document that is cut in its transfer.
struct Case {
    /// The address of the Source.
    address: &'static str,
    /// The documents of the first copy; `None` if the cut is in the first run.
    before: Option<Pages>,
    /// The documents after that, with the version that is read completely.
    after: Pages,
    /// The document, and its version whose transfer is interrupted.
    cut: &'static str,
    aborted: Vec<u8>,
}

/// The Source of a case, with resources `/keep`, `/old`, `/aborted` and `/last`, each an entity too.
struct Site {
    server: Server,
    pages: Arc<Mutex<HashMap<&'static str, Answer>>>,
    /// Requests for the cut document until one breaks off.
    left: Arc<AtomicUsize>,
    was_cut: Arc<AtomicBool>,
}

fn lines(server: &Server, name: &str) -> String {
    format!("<{}> <http://ns.example/text> \"{name}\" .\n", server.url(name))
}

impl Site {
    fn new(case: &Case, server: Server) -> Self {
        for name in ["/keep", "/old", "/aborted", "/last"] {
            let answer = Answer::ok(lines(&server, name));
            server.put(name, answer.header("content-type", "application/n-triples"));
        }
        server.put("/nothing", Answer::ok("").header("content-type", "application/n-triples"));
        let (left, was_cut) =
            (Arc::new(AtomicUsize::new(usize::MAX)), Arc::<AtomicBool>::default());
        let (counted, done) = (Arc::clone(&left), Arc::clone(&was_cut));
        let pages = Arc::<Mutex<HashMap<_, _>>>::default();
        let files = Arc::clone(&pages);
        let (cut, aborted) = (case.cut, case.aborted.clone());
        server.handler(move |target, _| {
            // A server of files leaves the query out.
            let path = target.split('?').next().unwrap_or_default();
            if path == cut && counted.fetch_sub(1, Ordering::SeqCst) == 0 {
                done.store(true, Ordering::SeqCst);
                return Some(Answer::cut(aborted.clone(), SHORT));
            }
            files.lock().unwrap().get(path).cloned()
        });
        Self { server, pages, left, was_cut }
    }

    fn publish(&self, pages: &Pages) {
        for (path, body) in pages {
            let body = body.clone();
            // Servers of SDShare and of change feeds send a media type.
            let answer = match body.first() {
                Some(b'{') => Answer::ok(body).header("content-type", "application/activity+json"),
                _ if body.starts_with(b"<feed") => Answer::ok(body).header("content-type", ATOM),
                Some(b'<') if body.ends_with(b".\n") => {
                    Answer::ok(body).header("content-type", "application/n-triples")
                }
                _ => Answer::ok(body),
            };
            self.pages.lock().unwrap().insert(path, answer);
        }
    }

    /// Cuts the document in its nth transfer from here on.
    fn cut_at(&self, number: usize) {
        self.left.store(number, Ordering::SeqCst);
        self.was_cut.store(false, Ordering::SeqCst);
    }
}

/// Makes a case for a server.
type Make = fn(&Server) -> Case;

/// The end of a run, the content of the copy without the address of its server, and the reports of
/// an audit.
type Outcome = (String, Vec<String>, Vec<String>);

/// Runs a case, with cuts in that transfer of its last run and of the audit; whether there were any.
fn outcome(make: Make, at: Option<usize>) -> (Outcome, bool) {
    let server = Server::start();
    let case = make(&server);
    let site = Site::new(&case, server);
    let mut copy = Copy::of(site.server.url(case.address));
    let is_of_files = Path::new(case.address).extension().is_some_and(|ending| ending == "xml");
    if !is_of_files {
        copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    }
    if let Some(before) = &case.before {
        site.publish(before);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{} {:?}", case.cut, ran.reported);
    }
    site.publish(&case.after);
    at.inspect(|at| site.cut_at(*at));
    let ran = copy.try_run();
    let mut was_cut = site.was_cut.load(Ordering::SeqCst);
    at.inspect(|at| site.cut_at(*at));
    let audited = Ran::audit(&copy.options, false);
    was_cut |= site.was_cut.load(Ordering::SeqCst);
    let differences = match &audited.result {
        Ok(_) => {
            audited.items.iter().map(|item| format!("{:?} {}", item.action, item.uri)).collect()
        }
        Err(error) => vec![error.code().to_owned()],
    };
    let without = |text: String| text.replace(&site.server.base, "");
    let kept: Vec<String> = if is_of_files {
        copy.texts().into_values().collect()
    } else {
        canonical(quads(copy.folder()))
    };
    let kept = kept.into_iter().map(without).collect();
    let ended = format!("{} {}", ran.exit(), ran.code());
    ((ended, kept, differences.into_iter().map(without).collect()), was_cut)
}

const NEW: &str = "2026-01-02T00:00:00Z";
const NEWER: &str = "2026-01-03T00:00:00Z";

/// A document of 1.1.
fn listed(root: &str, attributes: &str, entries: &[String]) -> Vec<u8> {
    document(root, attributes, &entries.concat()).into_bytes()
}

fn url(server: &Server, path: &str) -> String {
    format!("<url><loc>{}</loc></url>\n", server.url(path))
}

fn member(server: &Server, path: &str, attributes: &str) -> String {
    format!("<sitemap><loc>{}</loc><rs:md {attributes}/></sitemap>\n", server.url(path))
}

fn change(server: &Server, path: &str, kind: &str, time: &str) -> String {
    format!(
        "<url><loc>{}</loc><rs:md change=\"{kind}\" datetime=\"{time}\"/></url>\n",
        server.url(path)
    )
}

fn resource_list(server: &Server, paths: &[&str]) -> Vec<u8> {
    let entries: Vec<_> = paths.iter().map(|path| url(server, path)).collect();
    listed("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &entries)
}

fn resource_index(server: &Server, lists: &[&str]) -> Vec<u8> {
    let of = format!("at=\"{BEGIN}\"");
    let entries: Vec<_> = lists.iter().map(|path| member(server, path, &of)).collect();
    listed("sitemapindex", &format!("capability=\"resourcelist\" {of}"), &entries)
}

fn change_list(entries: &[String]) -> Vec<u8> {
    listed("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), entries)
}

fn change_index(server: &Server, lists: &[&str]) -> Vec<u8> {
    let of = format!("from=\"{BEGIN}\"");
    let entries: Vec<_> = lists.iter().map(|path| member(server, path, &of)).collect();
    listed("sitemapindex", &format!("capability=\"changelist\" {of}"), &entries)
}

fn caps(server: &Server, offered: &[(&str, &str)]) -> Vec<u8> {
    let offered = offered.iter().map(|(kind, path)| (*kind, server.url(path)));
    capability_list(offered).into_bytes()
}

/// The changes that are read completely, and the changes of the interrupted transfer.
fn changes(server: &Server) -> (Vec<u8>, Vec<u8>) {
    let last = [change(server, "/old", "deleted", NEW), change(server, "/last", "created", NEWER)];
    let aborted =
        [change(server, "/aborted", "created", NEW), change(server, "/keep", "deleted", NEWER)];
    (change_list(&last), change_list(&aborted))
}

fn of_resource_list(server: &Server) -> Case {
    Case {
        address: "/list.xml",
        before: Some(vec![("/list.xml", resource_list(server, &["/keep", "/old"]))]),
        after: vec![("/list.xml", resource_list(server, &["/keep", "/last"]))],
        cut: "/list.xml",
        aborted: resource_list(server, &["/aborted", "/keep", "/old"]),
    }
}

fn of_resource_list_index(server: &Server) -> Case {
    Case {
        address: "/list.xml",
        before: Some(vec![
            ("/list.xml", resource_index(server, &["/1.xml"])),
            ("/1.xml", resource_list(server, &["/keep", "/old"])),
            ("/2.xml", resource_list(server, &["/aborted"])),
            ("/3.xml", resource_list(server, &["/keep", "/last"])),
        ]),
        after: vec![("/list.xml", resource_index(server, &["/3.xml"]))],
        cut: "/list.xml",
        aborted: resource_index(server, &["/1.xml", "/2.xml"]),
    }
}

fn of_list_of_index(server: &Server) -> Case {
    let index = |lists: &[&str]| ("/list.xml", resource_index(server, lists));
    Case {
        address: "/list.xml",
        before: Some(vec![
            index(&["/1.xml", "/2.xml"]),
            ("/1.xml", resource_list(server, &["/keep"])),
            ("/2.xml", resource_list(server, &["/old"])),
        ]),
        after: vec![("/2.xml", resource_list(server, &["/last"]))],
        cut: "/2.xml",
        aborted: resource_list(server, &["/aborted", "/old"]),
    }
}

fn of_change_list(server: &Server) -> Case {
    let (last, aborted) = changes(server);
    let caps = caps(server, &[("resourcelist", "/list.xml"), ("changelist", "/changes.xml")]);
    Case {
        address: "/caps.xml",
        before: Some(vec![
            ("/caps.xml", caps),
            ("/list.xml", resource_list(server, &["/keep", "/old"])),
            ("/changes.xml", change_list(&[])),
        ]),
        after: vec![("/changes.xml", last)],
        cut: "/changes.xml",
        aborted,
    }
}

fn of_change_list_index(server: &Server) -> Case {
    let (last, aborted) = changes(server);
    let mut case = of_change_list(server);
    for (path, body) in case.before.iter_mut().flatten() {
        if *path == "/changes.xml" {
            *body = change_index(server, &["/c1.xml"]);
        }
    }
    case.before.as_mut().unwrap().push(("/c1.xml", change_list(&[])));
    let closed =
        format!("capability=\"changelist\" from=\"{BEGIN}\" until=\"2026-01-01T12:00:00Z\"");
    case.after = vec![
        ("/changes.xml", change_index(server, &["/c1.xml", "/c3.xml"])),
        ("/c1.xml", listed("urlset", &closed, &[])),
        ("/c2.xml", aborted),
        ("/c3.xml", last),
    ];
    case.aborted = change_index(server, &["/c1.xml", "/c2.xml"]);
    case
}

fn of_capability_list(server: &Server) -> Case {
    Case {
        address: "/caps.xml",
        before: None,
        after: vec![
            ("/caps.xml", caps(server, &[("resourcelist", "/list.xml")])),
            ("/list.xml", resource_list(server, &["/keep", "/last"])),
            ("/2.xml", resource_list(server, &["/aborted"])),
        ],
        cut: "/caps.xml",
        aborted: caps(server, &[("changelist", "/c.xml"), ("resourcelist", "/2.xml")]),
    }
}

fn package(server: &Server, names: &[&str]) -> Vec<u8> {
    let (mut zip, mut entries) = (Zip::new(), Vec::new());
    for name in names {
        zip.add(&name[1..], lines(server, name).as_bytes());
        let loc = server.url(name);
        let about = "type=\"application/n-triples\"";
        entries.push(format!("<url><loc>{loc}</loc><rs:md {about} path=\"{name}\"/></url>"));
    }
    let attributes = format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\"");
    zip.add("manifest.xml", &listed("urlset", &attributes, &entries));
    zip.finish()
}

fn of_dump(server: &Server) -> Case {
    let packages = [
        ("/1.zip", package(server, &["/keep", "/old"])),
        ("/2.zip", package(server, &["/aborted"])),
        ("/3.zip", package(server, &["/keep", "/last"])),
    ];
    let dump = |paths: &[&str]| {
        let entry = |path: &&str| {
            let package = packages.iter().find(|(name, _)| name == path);
            let hash = package.map(|(_, bytes)| md5_hex(bytes)).unwrap();
            format!("<url><loc>{}</loc><rs:md hash=\"md5:{hash}\"/></url>", server.url(path))
        };
        let entries: Vec<_> = paths.iter().map(entry).collect();
        listed("urlset", &format!("capability=\"resourcedump\" at=\"{BEGIN}\""), &entries)
    };
    let caps = ("/caps.xml", caps(server, &[("resourcedump", "/dump.xml")]));
    let first = ("/dump.xml", dump(&["/1.zip"]));
    Case {
        address: "/caps.xml",
        before: Some(packages.clone().into_iter().chain([caps, first]).collect()),
        after: vec![("/dump.xml", dump(&["/3.zip"]))],
        cut: "/dump.xml",
        aborted: dump(&["/1.zip", "/2.zip"]),
    }
}

/// A Sitemap of 0.1, or an index of Sitemaps.
fn sitemap(root: &str, time: &str, entries: &[String]) -> Vec<u8> {
    let head = rs01_source::modified(time)
        + &rs01_source::link(&format!("current {CHANGE_SET}"), "/changes.xml");
    rs01_source::document(root, "", &(head + &entries.concat())).into_bytes()
}

fn set(server: &Server, entries: &[(&str, &str, &str)]) -> Vec<u8> {
    let time = entries.last().map_or(BEGIN, |entry| entry.2);
    let mut inside = rs01_source::modified(time)
        + &rs01_source::link(&format!("current {CHANGE_SET}"), "/changes.xml");
    for (path, kind, time) in entries {
        let time = match *kind {
            "deleted" => format!("<expires>{time}</expires>"),
            kind => format!("<lastmod rs:type=\"{kind}\">{time}</lastmod>"),
        };
        inside.push_str(&format!("<url><loc>{}</loc>{time}</url>\n", server.url(path)));
    }
    rs01_source::document("urlset", "rs:type=\"changeset\"", &inside).into_bytes()
}

fn of_change_set(server: &Server) -> Case {
    let entries = ["/keep", "/old"].map(|path| url(server, path));
    Case {
        address: "/s.xml",
        before: Some(vec![
            ("/s.xml", sitemap("urlset", BEGIN, &entries)),
            ("/changes.xml", set(server, &[("/keep", "updated", BEGIN)])),
        ]),
        after: vec![(
            "/changes.xml",
            set(
                server,
                &[
                    ("/keep", "updated", BEGIN),
                    ("/old", "deleted", NEW),
                    ("/last", "created", NEWER),
                ],
            ),
        )],
        cut: "/changes.xml",
        aborted: set(
            server,
            &[
                ("/keep", "updated", BEGIN),
                ("/aborted", "created", NEW),
                ("/keep", "deleted", NEWER),
            ],
        ),
    }
}

fn of_sitemap(server: &Server) -> Case {
    let urls = |paths: &[&str]| paths.iter().map(|path| url(server, path)).collect::<Vec<_>>();
    Case {
        address: "/s.xml",
        before: None,
        after: vec![
            ("/s.xml", sitemap("urlset", BEGIN, &urls(&["/keep", "/last"]))),
            ("/changes.xml", set(server, &[("/keep", "updated", BEGIN)])),
        ],
        cut: "/s.xml",
        aborted: sitemap("urlset", BEGIN, &urls(&["/aborted", "/keep", "/old"])),
    }
}

fn of_sitemap_index(server: &Server) -> Case {
    let urls = |paths: &[&str]| paths.iter().map(|path| url(server, path)).collect::<Vec<_>>();
    let index = |paths: &[&str]| {
        let entry = |path: &&str| format!("<sitemap><loc>{}</loc></sitemap>", server.url(path));
        sitemap("sitemapindex", BEGIN, &paths.iter().map(entry).collect::<Vec<_>>())
    };
    Case {
        address: "/s.xml",
        before: None,
        after: vec![
            ("/s.xml", index(&["/1.xml"])),
            ("/1.xml", sitemap("urlset", BEGIN, &urls(&["/keep", "/last"]))),
            ("/2.xml", sitemap("urlset", BEGIN, &urls(&["/aborted"]))),
            ("/changes.xml", set(server, &[("/keep", "updated", BEGIN)])),
        ],
        cut: "/s.xml",
        aborted: index(&["/2.xml", "/1.xml"]),
    }
}

/// A feed of SDShare; entries consist of their time and their content.
fn atom(entries: &[(&str, String)]) -> Vec<u8> {
    let mut out = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"http://www.sdshare.org/2012/core/\"><id>urn:x:f</id>\
         <title>t</title><author><name>a</name></author><updated>{NEWER}</updated>"
    );
    for (number, (time, inside)) in entries.iter().enumerate() {
        out.push_str(&format!(
            "<entry><id>urn:x:{number}</id><title>e</title><updated>{time}</updated>{inside}</entry>\n"
        ));
    }
    (out + "</feed>").into_bytes()
}

fn rel(relation: &str, href: &str) -> String {
    let media_type = if relation.ends_with("feed") || relation == "chunked-snapshot" {
        ATOM
    } else {
        "application/n-triples"
    };
    format!(
        "<link rel=\"http://www.sdshare.org/2012/core/{relation}\" type=\"{media_type}\" href=\"{href}\"/>"
    )
}

fn fragment(server: &Server, name: &str, href: &str) -> String {
    let iri = server.url(name);
    let is_deleted = href == "/nothing";
    let mark = if is_deleted {
        format!("<category scheme=\"{CATEGORIES}\" term=\"deleted\"/>")
    } else {
        String::new()
    };
    mark + &rel("fragment", href) + &format!("<s:resource>{iri}</s:resource>")
}

fn collection(links: &[(&str, &str)]) -> Vec<u8> {
    let entries: Vec<_> = links.iter().map(|(relation, href)| (NEW, rel(relation, href))).collect();
    atom(&entries)
}

fn of_fragments(server: &Server) -> Case {
    let whole = |name: &str| fragment(server, name, name);
    Case {
        address: "/collection",
        before: Some(vec![
            ("/collection", collection(&[("fragmentsfeed", "/fragments")])),
            ("/fragments", atom(&[(BEGIN, whole("/keep")), (BEGIN, whole("/old"))])),
        ]),
        after: vec![(
            "/fragments",
            atom(&[
                (BEGIN, whole("/keep")),
                (NEW, fragment(server, "/old", "/nothing")),
                (NEWER, whole("/last")),
            ]),
        )],
        cut: "/fragments",
        aborted: atom(&[
            (BEGIN, whole("/keep")),
            (NEW, whole("/aborted")),
            (NEWER, fragment(server, "/keep", "/nothing")),
        ]),
    }
}

fn descriptions(server: &Server, names: &[&str]) -> Vec<u8> {
    names.iter().map(|name| lines(server, name)).collect::<String>().into_bytes()
}

fn of_snapshots(server: &Server) -> Case {
    let snapshot = |time, path| atom(&[(time, rel("snapshot", path))]);
    Case {
        address: "/collection",
        before: None,
        after: vec![
            ("/collection", collection(&[("snapshotsfeed", "/snapshots")])),
            ("/snapshots", snapshot(NEW, "/2.nt")),
            ("/1.nt", descriptions(server, &["/aborted", "/keep", "/old"])),
            ("/2.nt", descriptions(server, &["/keep", "/last"])),
        ],
        cut: "/snapshots",
        aborted: snapshot(NEWER, "/1.nt"),
    }
}

fn of_chunks(server: &Server) -> Case {
    let chunks = |paths: &[&str]| {
        let entry = |path: &&str| (NEW, rel("snapshot-component", path));
        atom(&paths.iter().map(entry).collect::<Vec<_>>())
    };
    Case {
        address: "/collection",
        before: None,
        after: vec![
            ("/collection", collection(&[("snapshotsfeed", "/snapshots")])),
            ("/snapshots", atom(&[(NEW, rel("chunked-snapshot", "/chunks"))])),
            ("/chunks", chunks(&["/2.nt", "/3.nt"])),
            ("/1.nt", descriptions(server, &["/aborted"])),
            ("/2.nt", descriptions(server, &["/keep"])),
            ("/3.nt", descriptions(server, &["/last"])),
        ],
        cut: "/chunks",
        aborted: chunks(&["/1.nt", "/2.nt"]),
    }
}

fn of_collection(server: &Server) -> Case {
    let whole = |name: &str| fragment(server, name, name);
    Case {
        address: "/collection",
        before: None,
        after: vec![
            ("/collection", collection(&[("fragmentsfeed", "/fragments")])),
            ("/fragments", atom(&[(NEW, whole("/keep")), (NEW, whole("/last"))])),
            ("/others", atom(&[(NEW, whole("/aborted"))])),
        ],
        cut: "/collection",
        aborted: collection(&[("fragmentsfeed", "/others")]),
    }
}

fn of_overview(server: &Server) -> Case {
    let of = of_collection(server);
    let mut after = of.after;
    after.push(("/overview", collection(&[("collectionfeed", "/collection")])));
    Case {
        address: "/overview",
        after,
        cut: "/overview",
        aborted: collection(&[("collectionfeed", "/other"), ("collectionfeed", "/collection")]),
        ..of
    }
}

fn of_activities(server: &Server) -> Case {
    const CONTEXT: &str = "https://emm-spec.org/1.0/context.json";
    let page = |changes: &[(&str, &str, &str)]| {
        let item = |(name, kind, time): &(&str, &str, &str)| {
            let links =
                json!([{"type": "Link", "href": name, "mediaType": "application/n-triples"}]);
            let object =
                json!({"id": server.url(name), "type": "http://ns.example/Term", "url": links});
            json!({"type": kind, "object": object, "published": time})
        };
        let items: Vec<_> = changes.iter().map(item).collect();
        let page = json!({"@context": CONTEXT, "id": server.url("/feed/1"), "type": "OrderedCollectionPage",
            "orderedItems": items, "partOf": {"id": server.url("/feed"), "type": "OrderedCollection"}});
        page.to_string().into_bytes()
    };
    let reference = json!({"id": server.url("/feed/1"), "type": "OrderedCollectionPage"});
    let entry = json!({"@context": CONTEXT, "id": server.url("/feed"), "type": "OrderedCollection",
        "first": reference, "last": reference});
    let begin = [("/keep", "Create", BEGIN), ("/old", "Create", BEGIN)];
    let and =
        |changes: [(&'static str, &'static str, &'static str); 2]| page(&[begin, changes].concat());
    Case {
        address: "/feed",
        before: Some(vec![("/feed", entry.to_string().into_bytes()), ("/feed/1", page(&begin))]),
        after: vec![("/feed/1", and([("/old", "Delete", NEW), ("/last", "Create", NEWER)]))],
        cut: "/feed/1",
        aborted: and([("/aborted", "Create", NEW), ("/keep", "Delete", NEWER)]),
    }
}

#[test]
fn nothing_of_a_version_that_broke_off_counts() {
    let cases: [(&str, Make); 16] = [
        ("Resource List", of_resource_list),
        ("index of Resource Lists", of_resource_list_index),
        ("Resource List of an index", of_list_of_index),
        ("Change List", of_change_list),
        ("index of Change Lists", of_change_list_index),
        ("Capability List", of_capability_list),
        ("dump", of_dump),
        ("Sitemap of 0.1", of_sitemap),
        ("index of Sitemaps of 0.1", of_sitemap_index),
        ("change set", of_change_set),
        ("fragments feed", of_fragments),
        ("snapshots feed", of_snapshots),
        ("chunked snapshot feed", of_chunks),
        ("collection feed", of_collection),
        ("overview feed", of_overview),
        ("page of activities", of_activities),
    ];
    let mut wrong = Vec::new();
    for (name, make) in cases {
        let (expected, _) = outcome(make, None);
        let (kept, differences) = (expected.1.join(" "), &expected.2);
        let is_right = |kept: &str| kept.contains("/last") && !kept.contains("/old");
        assert!(is_right(&kept) && differences.is_empty(), "{name} {expected:?}");
        let cuts = (0..CUTS).filter(|at| {
            let (outcome, was_cut) = outcome(make, Some(*at));
            if outcome != expected {
                wrong.push(format!("{name}, transfer {at}: {outcome:?}, not {expected:?}"));
            }
            was_cut
        });
        assert!(cuts.count() > 0, "{name} was never cut");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
