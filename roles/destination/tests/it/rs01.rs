//! Copies of Sources of ResourceSync 0.1.

use crate::contract::kills::run_killed_at;
use crate::copy::{Copy, Ran};
use crate::rs01_source::{
    CHANGE_SET, OldSource, Shape, base64_of_hex, document, fixity, link, modified,
};
use abreast_destination::{Dumps, Event, Filter, MaxDelete, Mode, Tolerance};
use abreast_testkit::digest::sha256_hex;
use abreast_testkit::documents::{BEGIN, capability_list};
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::zip::Zip;
use abreast_testkit::{Random, seeds};
use abreast_webtypes::Timestamp;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) const DUMP: &str = "http://www.openarchives.org/rs/dump";

/// A copy with the base fixed, as paths of all tests are below the root of the server.
pub(crate) fn copy_of(source: &OldSource) -> Copy {
    copy_at(source, source.url())
}

pub(crate) fn copy_at(source: &OldSource, url: String) -> Copy {
    let mut copy = Copy::of(url);
    copy.options.base = Some(source.server.url("/"));
    copy
}

/// A run without failures, after which the copy is the Source.
fn run_equal(copy: &Copy, source: &OldSource) -> Ran {
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
    assert_eq!(copy.texts(), source.texts(), "{:?}", ran.reported);
    ran
}

pub(crate) fn some(source: &mut OldSource, count: usize) {
    for number in 0..count {
        source.set(&format!("/f{number:02}"), &format!("file {number}"));
    }
    source.snapshot();
}

#[test]
fn chains_without_an_end_are_left() {
    for prev in ["/c.xml", "/c/loop.xml", "http://other.example/c.xml", "/none.xml", "/f00"] {
        let mut source = OldSource::new();
        some(&mut source, 2);
        let copy = copy_of(&source);
        run_equal(&copy, &source);
        source.set("/new", "1");
        source.snapshot();
        let entry = |path: &str, time: &str| {
            let loc = source.server.url(path);
            let time = format!("<lastmod rs:type=\"updated\">{time}</lastmod>");
            format!("<url><loc>{loc}</loc>{time}</url>")
        };
        let set = |prev: &str| {
            let inside = link(&format!("prev {CHANGE_SET}"), prev);
            document("urlset", "rs:type=\"changeset\"", &(inside + &entry("/new", &source.now())))
        };
        source.server.body("/c.xml", set(prev));
        source.server.body("/c/loop.xml", set("/c/loop.xml"));
        let ran = copy.try_run();
        assert_eq!(copy.texts(), source.texts(), "{prev}");
        assert!(ran.has("gap"), "{prev}: {:?}", ran.reported);
        assert_eq!(ran.summary().deleted, 0, "{prev}");
    }
}

#[test]
fn a_time_in_the_future_makes_no_old_list_a_new_one() {
    const FUTURE: [&str; 2] =
        ["<lastmod>2099-01-01T00:00:00Z</lastmod>", "<expires>2099-01-01T00:00:00Z</expires>"];
    for (odd, as_dump) in FUTURE.iter().flat_map(|odd| [(*odd, false), (*odd, true)]) {
        let mut source = OldSource::of(Shape { modified: false, ..Shape::default() });
        some(&mut source, 5);
        source.server.body("/odd", "odd");
        source.kept.insert("/odd".to_owned(), "odd".to_owned());
        let times: BTreeMap<_, _> = source
            .kept
            .keys()
            .map(|path| (path.clone(), source.time_of(path).to_owned()))
            .collect();
        let time = |path: &str| match path {
            "/odd" => odd.to_owned(),
            path => format!("<lastmod>{}</lastmod>", times[path]),
        };
        let url = if as_dump {
            source.set_links = link(DUMP, "/d.zip");
            source.server.remove("/s.xml");
            let dump = dump_with(&source, "", &time);
            source.server.put("/d.zip", Answer::ok(dump).header("etag", "\"1\""));
            source.publish();
            source.server.url("/c.xml")
        } else {
            let entry =
                |path| format!("<url><loc>{}</loc>{}</url>", source.server.url(path), time(path));
            let entries: String = source.kept.keys().map(|path| entry(path)).collect();
            let head = link(&format!("current {CHANGE_SET}"), "/c.xml");
            source.server.body("/s.xml", document("urlset", "", &(head + &entries)));
            source.url()
        };
        let copy = copy_at(&source, url.clone());
        let ran = run_equal(&copy, &source);
        assert_eq!(ran.has("time.future"), odd.starts_with("<lastmod>"), "{:?}", ran.reported);
        // Hours later the list is still the same.
        source.wait(10);
        source.delete("/f00");
        source.set("/f01", "changed");
        source.set("/new", "1");
        source.wait(10);
        let again = copy_at(&source, url);
        run_equal(&again, &source);
        assert_eq!(again.audit(true).exit_code, 0, "{odd} {as_dump}");
        let mut copy = copy;
        copy.options.baseline = true;
        run_equal(&copy, &source);
    }
}

/// The time `micros` microseconds from now, and its text for servers.
pub(crate) fn from_now(micros: i64) -> (String, String) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let time = Timestamp::from_micros(since.as_micros() as i64 + micros);
    let date = UNIX_EPOCH + Duration::from_micros(time.as_micros() as u64);
    (time.to_string(), httpdate::fmt_http_date(date))
}

#[test]
fn a_deletion_that_our_clock_has_not_reached_is_not_lost() {
    const SECOND: i64 = 1_000_000;
    // One change set, or a closed one before the current one.
    for is_closed in [false, true] {
        let mut source = OldSource::of(Shape { per_set: 1_000, ..Shape::default() });
        some(&mut source, 3);
        source.server.remove("/s.xml");
        let copy = copy_at(&source, source.server.url("/c.xml"));
        copy.run();
        assert_eq!(copy.texts(), source.texts());
        let known = String::from_utf8(source.server.page("/c.xml")).unwrap();
        let entry = |path: &str, time: &str| {
            format!("<url><loc>{}</loc>{time}</url></urlset>", source.server.url(path))
        };
        let deletion = entry("/f00", &format!("<expires>{}</expires>", from_now(60 * SECOND).0));
        let time = from_now(61_500_000).0;
        let update = entry("/f01", &format!("<lastmod rs:type=\"updated\">{time}</lastmod>"));
        source.server.body("/f01", "changed");
        let first = known.replace("</urlset>", &deletion);
        let prev = link(&format!("prev {CHANGE_SET}"), "/c/0.xml");
        let second = if is_closed {
            document("urlset", "rs:type=\"changeset\"", &(prev + "</urlset>")).replacen(
                "</urlset>",
                &update.replace("</urlset>", ""),
                1,
            )
        } else {
            first.replace("</urlset>", &update)
        };
        let publish = |date: &str| {
            source.server.put("/c/0.xml", Answer::ok(first.clone()).header("date", date));
            source.server.put("/c.xml", Answer::ok(second.clone()).header("date", date));
        };
        // Neither clock has reached it.
        publish(&from_now(0).1);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
        assert!(ran.has("time.future"), "{:?}", ran.reported);
        assert_eq!(copy.paths(), ["f00", "f01", "f02"]);
        assert_eq!(copy.read("f01").as_deref(), Some("changed"));
        // The Source's clock has, and ours has not.
        publish(&from_now(70 * SECOND).1);
        let ran = copy.try_run();
        assert!(!ran.has("time.future"), "{:?}", ran.reported);
        assert_eq!(copy.paths(), ["f01", "f02"], "{is_closed} {:?}", ran.reported);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        assert_eq!(copy.paths(), ["f01", "f02"]);
    }
}

#[test]
fn a_change_set_with_entries_left_out_is_read_until_it_is_right() {
    let mut source = OldSource::new();
    some(&mut source, 3);
    let mut copy = copy_of(&source);
    copy.options.tolerance = Tolerance::Lenient;
    run_equal(&copy, &source);
    source.set("/f01", "changed");
    source.delete("/f00");
    source.set("/f02", "changed");
    source.set("/more", "1");
    let right = String::from_utf8(source.server.page("/c/1.xml")).unwrap();
    let wrong = right.replace("<expires>", "<lastmod rs:type=\"deleted\">");
    let wrong = wrong.replace("</expires>", "</lastmod>");
    for number in 0..4 {
        source.server.body("/c/1.xml", wrong.clone());
        let ran = copy.try_run();
        assert!(ran.has("rs.entry"), "{number} {:?}", ran.reported);
        assert_eq!(copy.paths(), ["f00", "f01", "f02", "more"]);
        // More change sets follow.
        for _ in 0..3 {
            source.set("/more", &number.to_string());
        }
    }
    source.server.body("/c/1.xml", right);
    let ran = run_equal(&copy, &source);
    assert_eq!(ran.summary().mode, Mode::Incremental, "{:?}", ran.reported);
}

#[test]
fn a_list_that_is_none_deletes_nothing() {
    let mut source = OldSource::new();
    some(&mut source, 3);
    let copy = copy_of(&source);
    run_equal(&copy, &source);
    let before = source.server.page("/s.xml");
    let cases = [
        (source.change_set(0), "list.capability"),
        (document("urlset", "", ""), "list.empty"),
        (document("urlset", "", "<url><loc>http://other.example/a</loc></url>"), "list.elsewhere"),
        (String::from_utf8_lossy(&before[..before.len() - 9]).into_owned(), "xml.eof"),
        ("<html>".to_owned(), "rs.root"),
    ];
    for (body, code) in cases {
        source.server.body("/s.xml", body);
        let mut compared = copy_of(&source);
        compared.options.folder.clone_from(&copy.options.folder);
        compared.options.baseline = true;
        let ran = compared.try_run();
        assert_eq!(ran.code(), code, "{:?}", ran.reported);
        assert_eq!(copy.texts(), source.texts(), "{code}");
    }
}

#[test]
fn the_misprints_of_the_draft_are_read() {
    let server = Server::start();
    for path in ["/res1", "/res2", "/res3"] {
        server.body(path, path);
    }
    let (one, two) = (server.url("/res1"), server.url("/res2"));
    let set = |end: &str, entries: &str| {
        document("urlset", "", &(modified(BEGIN) + entries)).replace("</urlset>", end)
    };
    let entries = format!(
        "<url><loc>\n  {one}\n</loc><lastmod>2026-01-01T08:15:00Z</lastmod>\
         <rs:fixity type=\"md5\">A7kjY2sgSW50ZWdyaX6sgt=</rs:fixity></url><url><loc>{two}</sm:loc></url>"
    );
    server.body("/s.xml", set("<urlset>", &entries));
    let mut copy = Copy::of(server.url("/s.xml"));
    assert_eq!(copy.try_run().code(), "xml.syntax");
    copy.options.tolerance = Tolerance::Lenient;
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
    assert_eq!(copy.paths(), ["res1", "res2"]);
    assert!(ran.codes.len() >= 2, "{:?}", ran.reported);
}

#[test]
fn a_change_set_in_a_stanza_is_read_leniently() {
    let server = Server::start();
    server.body("/objects/1", "first");
    server.body("/objects/3", "third");
    // The example as it is printed, with `</sm:loc>`.
    let example = include_str!("../../../../conformance/resourcesync-0.1/ex-5.5.as-printed.xml");
    let stanza = example.replace("http://museum.example", &server.base);
    server.body("/set.xml", stanza.clone());
    let mut copy = Copy::of(server.url("/set.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.code(), ran.exit()), ("rs.root", 4), "{:?}", ran.result);
    copy.options.tolerance = Tolerance::Lenient;
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
    assert!(ran.has("rs.wrapper"), "{:?}", ran.reported);
    assert_eq!(copy.paths().len(), 2, "{:?}", copy.paths());
    copy.run();
    // One of two change sets would be lost.
    let set = &stanza[stanza.find("<urlset").unwrap()..stanza.find("</xmpp:item>").unwrap()];
    server.body("/set.xml", stanza.replace("</xmpp:item>", &format!("{set}</xmpp:item>")));
    let ran = copy.try_run();
    assert_eq!((ran.code(), ran.exit()), ("rs.root", 4), "{:?}", ran.result);
}

#[test]
fn only_resources_of_a_category_are_copied() {
    let category = |uri: &str, title: &str| {
        format!("<xhtml:link rel=\"DCTERMS.subject\" href=\"{uri}\" title=\"{title}\"/>")
    };
    let frogs = category("http://c.example/frogs", "Frogs");
    let fish = category("http://c.example/fish", "Fish");
    let toads = "<xhtml:meta name=\"DC.subject\" content=\"Toads\"/>";
    let mut source = OldSource::new();
    for (path, more) in
        [("/frog", frogs.as_str()), ("/fish", &fish), ("/toad", toads), ("/none", "")]
    {
        source.more.insert(path.to_owned(), more.to_owned());
        source.set(path, path);
    }
    source.snapshot();
    let mut copy = copy_of(&source);
    copy.options.categories = vec!["Frogs".to_owned(), "Toads".to_owned()];
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().excluded), (0, 2), "{:?}", ran.reported);
    assert_eq!(copy.paths(), ["frog", "toad"]);

    // Resources that leave the category are not changed; resources that enter it are fetched.
    source.more.insert("/frog".to_owned(), fish.clone());
    source.set("/frog", "a fish now");
    source.more.insert("/fish".to_owned(), frogs.clone());
    source.set("/fish", "a frog now");
    source.more.insert("/toad".to_owned(), String::new());
    source.set("/toad", "of no stated category");
    copy.run();
    assert_eq!(copy.read("frog").as_deref(), Some("/frog"));
    assert_eq!(copy.read("fish").as_deref(), Some("a frog now"));
    assert_eq!(copy.read("toad").as_deref(), Some("of no stated category"));

    // Another choice is compared with the Sitemap.
    source.snapshot();
    copy.options.categories = vec!["http://c.example/fish".to_owned()];
    let ran = copy.try_run();
    assert_eq!(ran.summary().mode, Mode::Baseline);
    assert_eq!(copy.read("frog").as_deref(), Some("a fish now"));
    copy.options.delete_excluded = true;
    copy.options.max_delete = MaxDelete::Percent(100.0);
    copy.run();
    assert_eq!(copy.paths(), ["frog"]);
}

/// The message that nothing listed is wanted.
fn nothing_wanted<R>(ran: &Ran<R>) -> String {
    let found = ran.reported.iter().find(|it| it.code == "filter.none");
    found.map(|it| it.message.clone()).unwrap_or_default()
}

#[test]
fn filters_that_match_nothing_are_reported() {
    let category = |name: &str| format!("<xhtml:meta name=\"DC.subject\" content=\"{name}\"/>");
    let mut source = OldSource::new();
    for (path, name) in [("/frog", "Frogs"), ("/fish", "Fish")] {
        source.more.insert(path.to_owned(), category(name));
        source.set(path, path);
    }
    source.snapshot();
    let mut copy = copy_of(&source);
    copy.options.categories = vec!["frogs".to_owned(), "Toads".to_owned()];
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().excluded), (0, 2), "{:?}", ran.reported);
    let text = nothing_wanted(&ran);
    assert!(text.contains("(`Toads`, `frogs`); listed are `Fish`, `Frogs`\n  help: "), "{text}");
    let audited = Ran::audit(&copy.options, false);
    assert_eq!(nothing_wanted(&audited), text, "{:?}", audited.reported);

    // The categories of Sitemaps that are not read are included; the message contains some of them.
    let mut index = modified(BEGIN);
    for number in 0..20 {
        let (loc, names) = (source.server.url("/s/0.xml"), category(&format!("C{number:02}")));
        index += &format!("<sitemap><loc>{loc}?{number}</loc>{names}</sitemap>");
    }
    source.server.body("/s.xml", document("sitemapindex", "", &index));
    let mut copy = copy_of(&source);
    copy.options.categories = vec!["Frogs".to_owned()];
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0);
    let text = nothing_wanted(&ran);
    assert!(text.contains("listed are `C00`, ") && text.contains("`C09`, and others"), "{text}");
    assert_eq!(nothing_wanted(&Ran::audit(&copy.options, false)), text);

    // A Source without any, and other filters.
    for (categories, filter, expected) in [
        (vec!["A".to_owned()], Filter::default(), "no categories are listed"),
        (Vec::new(), Filter::new(["+ *.pdf"]).unwrap().only(), "--test-filter"),
    ] {
        let mut source = OldSource::new();
        some(&mut source, 3);
        let mut copy = copy_of(&source);
        (copy.options.categories, copy.options.filter) = (categories, filter);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0);
        assert!(nothing_wanted(&ran).contains(expected), "{:?}", ran.reported);
        // Not reported where nothing is listed.
        assert!(!copy_of(&OldSource::new()).try_run().has("filter.none"));
    }
}

#[test]
fn sitemaps_of_other_categories_are_not_read() {
    let source = OldSource::of(Shape { modified: false, ..Shape::default() });
    let category = |name: &str| format!("<xhtml:meta name=\"DC.subject\" content=\"{name}\"/>");
    let publish = |path: &str, resources: &[(&str, &str)]| {
        let mut entries = String::new();
        for (resource, name) in resources {
            source.server.body(resource, *resource);
            let (loc, facts) = (source.server.url(resource), fixity(resource));
            entries += &format!("<url><loc>{loc}</loc>{facts}{}</url>", category(name));
        }
        source.server.body(path, document("urlset", "", &(modified(BEGIN) + &entries)));
    };
    publish("/s/0.xml", &[("/a", "A"), ("/b", "B")]);
    publish("/s/1.xml", &[("/c", "C")]);
    let member = |path: &str, names: &[&str]| {
        let names: String = names.iter().map(|name| category(name)).collect();
        format!("<sitemap><loc>{}</loc>{names}</sitemap>", source.server.url(path))
    };
    let index = modified(BEGIN) + &member("/s/0.xml", &["A", "B"]) + &member("/s/1.xml", &["C"]);
    source.server.body("/s.xml", document("sitemapindex", "", &index));
    let mut copy = copy_of(&source);
    copy.options.categories = vec!["A".to_owned()];
    copy.run();
    assert_eq!(copy.paths(), ["a"]);
    let log = source.server.take_log();
    assert!(!log.contains(&"/s/1.xml".to_owned()), "{log:?}");

    // A resource that moved to a Sitemap of other categories is not deleted.
    publish("/s/0.xml", &[("/b", "B"), ("/a2", "A")]);
    publish("/s/1.xml", &[("/c", "C"), ("/a", "C")]);
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().deleted), (0, 0), "{:?}", ran.reported);
    assert_eq!(copy.paths(), ["a", "a2"]);
    // A resource that is missing in all Sitemaps is deleted; resources that were excluded before
    // remain.
    publish("/s/1.xml", &[("/c", "C")]);
    publish("/s/0.xml", &[("/b", "B")]);
    copy.run();
    assert_eq!(copy.paths(), ["a"]);
}

#[test]
fn categories_are_for_sources_that_have_them() {
    let source = crate::source::Source::new();
    let mut copy = Copy::of(source.url());
    copy.options.categories = vec!["A".to_owned()];
    assert_eq!(copy.try_run().code(), "filter.category");
}

#[test]
fn a_dump_that_its_first_request_makes_is_used() {
    for is_alone in [false, true] {
        let mut source = OldSource::new();
        source.links = link(DUMP, "/d.zip");
        some(&mut source, 5);
        source.server.put("/d.zip", Answer::ok(source.dump()).header("etag", "\"1\""));
        let asked = std::sync::atomic::AtomicUsize::new(0);
        source.server.handler(move |path, _| {
            let is_making = path.ends_with("/d.zip")
                && asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 3;
            is_making.then(|| Answer::status(202).header("retry-after", "0"))
        });
        let address = if is_alone { "/d.zip" } else { "/s.xml" };
        let mut copy = copy_at(&source, source.server.url(address));
        copy.options.dumps = Dumps::Always;
        run_equal(&copy, &source);
        let log = source.server.take_log();
        assert!(!log.iter().any(|path| path.starts_with("/f")), "{log:?}");
    }
}

#[test]
fn a_dump_by_itself_that_is_not_made_in_time_ends_the_run() {
    let source = OldSource::new();
    source.server.put("/d.zip", Answer::status(202).header("retry-after", "3600"));
    let ran = copy_at(&source, source.server.url("/d.zip")).try_run();
    assert_eq!((ran.code(), ran.exit()), ("http.making", 5), "{:?}", ran.result);
}

/// A dump whose manifest has that about each resource.
fn dump_with(source: &OldSource, head: &str, facts: &dyn Fn(&str) -> String) -> Vec<u8> {
    let (mut zip, mut inside) = (Zip::new(), head.to_owned());
    for (path, body) in &source.kept {
        let (loc, name) = (source.server.url(path), path.trim_start_matches('/'));
        zip.add(name, body.as_bytes());
        let facts = facts(path);
        inside += &format!("<url><loc>{loc}</loc>{facts}<rs:path>{name}</rs:path></url>");
    }
    zip.add("manifest.xml", document("urlset", "", &inside).as_bytes());
    zip.finish()
}

#[test]
fn members_of_a_dump_that_may_be_older_versions_are_requested() {
    // `/f00` changes at 02:00, while the dump is packed. No digest shows which version it has.
    for (has_times, stated, requested) in [
        (true, "2026-01-01T12:00:00Z", &["/f00"][..]),
        (true, "2099-01-01T00:00:00Z", &["/f00"]),
        (false, "2026-01-01T02:30:00Z", &["/f00", "/f02"]),
        (false, "2026-01-01T01:45:00Z", &["/f00", "/f01", "/f02"]),
        (false, "2099-01-01T00:00:00Z", &["/f00", "/f01", "/f02"]),
    ] {
        let mut source = OldSource::of(Shape { fixity: false, ..Shape::default() });
        source.links = link(DUMP, "/d.zip");
        some(&mut source, 3);
        let dump = if has_times {
            source.part_of_dump(&modified(stated), (0, 1))
        } else {
            dump_with(&source, &modified(stated), &|_| String::new())
        };
        source.server.put("/d.zip", Answer::ok(dump));
        source.set("/f00", "changed while the dump was packed");
        // So late that no change is replayed.
        source.wait(10);
        source.snapshot();
        let mut copy = copy_of(&source);
        copy.options.dumps = Dumps::Always;
        run_equal(&copy, &source);
        let mut log = source.server.take_log();
        log.retain(|path| path.starts_with("/f"));
        log.sort();
        assert_eq!(log, requested, "{has_times} {stated}");
    }
}

/// A Source with a dump and change sets, and no Sitemap; `parts` are the addresses of the dump.
/// A Source with change sets and these parts of a dump.
pub(crate) fn without_sitemap(parts: &[&str]) -> OldSource {
    let mut source = OldSource::new();
    source.set_links = parts.iter().map(|part| link(DUMP, part)).collect();
    some(&mut source, 6);
    source.server.remove("/s.xml");
    source
}

#[test]
fn changes_since_a_dump_are_replayed_whatever_time_it_states() {
    const DATE: &str = "Thu, 01 Jan 2026 03:00:00 GMT";
    for (head, is_future) in [(modified("2099-01-01T00:00:00Z"), true), (String::new(), false)] {
        let mut source = without_sitemap(&["/d.zip"]);
        let dump = source.part_of_dump(&head, (0, 1));
        let dump = Answer::ok(dump).header("etag", "\"1\"").header("date", DATE);
        source.server.put("/d.zip", dump);
        // While the dump was packed.
        source.set("/f00", "changed meanwhile");
        source.wait(48);
        let copy = copy_at(&source, source.server.url("/c.xml"));
        let ran = run_equal(&copy, &source);
        assert_eq!(ran.has("time.future"), is_future, "{:?}", ran.reported);
        source.set("/f01", "changed later");
        source.server.take_log();
        let ran = run_equal(&copy, &source);
        assert_eq!(ran.summary().mode, Mode::Incremental, "{:?}", ran.reported);
        let log = source.server.take_log();
        assert!(!log.contains(&"/d.zip".to_owned()), "{log:?}");
    }
}

#[test]
fn copies_of_dumps_can_be_audited_and_torn_ones_are_refused() {
    let mut source = without_sitemap(&["/d1.zip", "/d2.zip"]);
    for (part, path) in ["/d1.zip", "/d2.zip"].into_iter().enumerate() {
        source.server.body(path, source.part_of_dump(&modified(&source.now()), (part, 2)));
    }
    let copy = copy_at(&source, source.server.url("/c.xml"));
    run_equal(&copy, &source);
    source.set("/f00", "changed");
    source.delete("/f01");
    run_equal(&copy, &source);
    assert_eq!(copy.audit(true).exit_code, 0);
    std::fs::write(copy.folder().join("f02"), "damaged").unwrap();
    assert_eq!(copy.audit(true).updated, 1);

    source.server.body("/dump", "WARC/1.1\r\nWARC-Type: warcinfo\r\n");
    let ran = copy_at(&source, source.server.url("/dump")).try_run();
    assert_eq!(ran.code(), "dump.warc", "{:?}", ran.result);

    // Change sets do not list all there is.
    let mut source = OldSource::new();
    some(&mut source, 2);
    source.server.remove("/s.xml");
    let copy = copy_at(&source, source.server.url("/c.xml"));
    copy.try_run();
    assert_eq!(Ran::audit(&copy.options, false).code(), "list.none");
}

#[test]
fn resources_of_a_dump_that_expire_later_are_there_until_then() {
    let mut source = OldSource::new();
    some(&mut source, 3);
    let whole = source.kept.clone();
    let put = |source: &OldSource, time: &str| {
        let dump = dump_with(source, "", &|path| match path {
            "/f01" => format!("<expires>{time}</expires>"),
            _ => "<lastmod>2026-01-01</lastmod>".to_owned(),
        });
        source.server.put("/d.zip", Answer::ok(dump).header("etag", &format!("\"{time}\"")));
    };
    put(&source, "2999-01-01");
    let copy = copy_at(&source, source.server.url("/d.zip"));
    run_equal(&copy, &source);
    put(&source, "2026-01-01");
    assert_eq!(source.kept, whole);
    source.kept.remove("/f01");
    run_equal(&copy, &source);
}

/// Publishes a document with a validator.
fn publish(source: &OldSource, path: &str, body: String) {
    let etag = format!("\"{}\"", abreast_testkit::digest::md5_hex(&body));
    source.server.put(path, Answer::ok(body).header("etag", &etag));
}

#[test]
fn sitemaps_of_other_categories_hide_no_unchanged_ones() {
    let mut source = OldSource::new();
    source.set("/a", "a");
    let meta = |name: &str| format!("<xhtml:meta name=\"DC.subject\" content=\"{name}\"/>");
    let (own, other) = (source.entry("/a", &meta("A")), source.entry("/a", &meta("C")));
    publish(&source, "/s/0.xml", document("urlset", "", &(modified(BEGIN) + &own)));
    publish(&source, "/s/1.xml", document("urlset", "", &(modified(BEGIN) + &other)));
    let member = |path: &str, name: &str| {
        format!("<sitemap><loc>{}</loc>{}</sitemap>", source.server.url(path), meta(name))
    };
    let index = modified(BEGIN) + &member("/s/0.xml", "A") + &member("/s/1.xml", "C");
    publish(&source, "/s.xml", document("sitemapindex", "", &index));
    let mut copy = copy_of(&source);
    copy.options.categories = vec!["A".to_owned(), "B".to_owned()];
    run_equal(&copy, &source);
    source.server.take_log();
    // In another order they are the same categories.
    for categories in [["A", "B", "A"], ["B", "A", "B"]] {
        copy.options.categories = categories.map(str::to_owned).to_vec();
        run_equal(&copy, &source);
        assert_eq!(source.server.take_log(), ["/s.xml", "/s.xml", "/s/0.xml"]);
    }
}

#[test]
fn a_change_below_an_index_inside_an_index_is_found() {
    let mut source = OldSource::new();
    source.set("/a", "a");
    let index = |path: &str, member: &str| {
        let member = format!("<sitemap><loc>{}</loc></sitemap>", source.server.url(member));
        publish(&source, path, document("sitemapindex", "", &(modified(BEGIN) + &member)));
    };
    let list = |source: &OldSource| {
        let entries = modified(&source.now()) + &source.entry("/a", "");
        publish(source, "/s/0.xml", document("urlset", "", &entries));
    };
    list(&source);
    index("/s.xml", "/s/index.xml");
    index("/s/index.xml", "/s/0.xml");
    let copy = copy_of(&source);
    run_equal(&copy, &source);
    source.server.take_log();
    run_equal(&copy, &source);
    let asked = ["/s.xml", "/s.xml", "/s/index.xml", "/s/index.xml", "/s/0.xml"];
    assert_eq!(source.server.take_log(), asked);
    source.set("/a", "changed");
    list(&source);
    run_equal(&copy, &source);
}

#[test]
fn an_index_that_names_another_sitemap_is_compared_at_once() {
    let mut source = OldSource::new();
    source.set("/a", "a");
    let list = modified(&source.now()) + &source.entry("/a", "");
    publish(&source, "/s/0.xml", document("urlset", "", &list));
    publish(&source, "/s/1.xml", document("urlset", "", &modified(&source.now())));
    let index = |members: &[&str]| {
        let member =
            |path: &&str| format!("<sitemap><loc>{}</loc></sitemap>", source.server.url(path));
        let members: String = members.iter().map(member).collect();
        let body = document("sitemapindex", "", &(modified(BEGIN) + &members));
        // According to its headers, the document is unchanged.
        source.server.put("/s.xml", Answer::ok(body).header("etag", "\"1\""));
    };
    index(&["/s/0.xml"]);
    let copy = copy_of(&source);
    run_equal(&copy, &source);
    run_equal(&copy, &source);
    source.server.take_log();
    index(&["/s/0.xml", "/s/1.xml"]);
    run_equal(&copy, &source);
    let log = source.server.take_log();
    assert_eq!(log[..4], ["/s.xml", "/s.xml", "/s.xml", "/s/0.xml"], "{log:?}");
}

#[test]
fn a_dump_by_itself_is_a_source() {
    let mut source = OldSource::new();
    some(&mut source, 5);
    source.server.put("/d.zip", Answer::ok(source.dump()).header("etag", "\"1\""));
    let copy = copy_at(&source, source.server.url("/d.zip"));
    run_equal(&copy, &source);
    let mut log = source.server.take_log();
    // A Sitemap of the site may link to it, with other parts.
    log.retain(|path| path != "/robots.txt" && !path.starts_with("/.well-known/host-meta"));
    assert!(log.iter().all(|path| path.ends_with("/d.zip")), "{log:?}");
    let ran = run_equal(&copy, &source);
    assert_eq!(ran.summary().unchanged, 0, "the dump is not read again");
    source.kept.remove("/f00");
    source.kept.insert("/f01".to_owned(), "other".to_owned());
    source.server.put("/d.zip", Answer::ok(source.dump()).header("etag", "\"2\""));
    let ran = run_equal(&copy, &source);
    assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1));

    let hostile = [&b"PK\x03\x04 and nothing else"[..], b"PK\x03\x04"];
    for body in hostile {
        source.server.put("/d.zip", Answer::ok(body).header("etag", "\"3\""));
        let ran = copy.try_run();
        assert_eq!(ran.code(), "dump.zip", "{:?}", ran.result);
        assert_eq!(copy.texts(), source.texts());
    }
}

#[test]
fn members_that_a_dump_by_itself_lacks_are_requested() {
    let mut source = OldSource::new();
    source.shape.fixity = false;
    some(&mut source, 6);
    let (mut zip, mut inside) = (Zip::new(), modified(&source.now()));
    for (path, member) in [
        ("/f00", "f00"),
        ("/f01", "lost"),
        ("/f02", "../f02"),
        ("/f03", "link"),
        ("/f04", "secret"),
    ] {
        inside += &source.entry(path, &format!("<rs:path>{member}</rs:path>"));
    }
    inside += &source.entry("/f05", "");
    zip.add("f00", b"file 0").symlink("link", "f00").encrypted("secret", b"file 4");
    zip.add("manifest.xml", document("urlset", "", &inside).as_bytes());
    source.server.put("/d.zip", Answer::ok(zip.finish()));
    let ran = run_equal(&copy_at(&source, source.server.url("/d.zip")), &source);
    for code in ["dump.missing", "path.escape", "dump.symlink", "dump.encrypted"] {
        assert!(ran.has(code), "{code} {:?}", ran.reported);
    }
    let mut asked = source.server.take_log();
    asked.retain(|path| path.starts_with("/f"));
    asked.sort();
    assert_eq!(asked, ["/f01", "/f02", "/f03", "/f04", "/f05"]);
}

#[test]
fn a_dump_is_the_one_that_its_server_states() {
    let mut source = OldSource::new();
    some(&mut source, 5);
    let put = |source: &OldSource, etag: &str, body: &[u8], stated: &[u8]| {
        let digest = format!("sha-256=:{}:", base64_of_hex(&sha256_hex(stated)));
        let answer = Answer::ok(body).header("etag", etag).header("repr-digest", &digest);
        source.server.put("/d.zip", answer);
        digest
    };
    let mut copy = copy_at(&source, source.server.url("/d.zip"));
    copy.options.net.retries = 0;
    let whole = source.dump();
    put(&source, "\"1\"", &whole, &whole);
    run_equal(&copy, &source);

    let before = copy.texts();
    source.kept.remove("/f00");
    source.kept.insert("/f01".to_owned(), "other".to_owned());
    let whole = source.dump();
    put(&source, "\"2\"", &whole, b"another");
    let ran = copy.try_run();
    assert_eq!((ran.code(), ran.exit()), ("fixity.mismatch", 4), "{:?}", ran.result);
    assert_eq!(copy.texts(), before);

    // The headers of an interrupted transfer apply to the rest too.
    let digest = put(&source, "\"3\"", &whole, &whole);
    let half = whole.len() / 2;
    let head = format!(
        "HTTP/1.1 200 OK\r\netag: \"3\"\r\nrepr-digest: {digest}\r\ncontent-length: {}\r\n\r\n",
        whole.len()
    );
    let cut = [head.as_bytes(), &whole[..half]].concat();
    source.server.handler(move |_, _| Some(Answer::raw(cut.clone())));
    assert_ne!(copy.try_run().exit(), 0);
    source.server.handler(|_, _| None);
    let mut altered = whole.clone();
    altered[half + 1] ^= 1;
    source.server.put("/d.zip", Answer::ok(altered).header("etag", "\"3\""));
    assert_eq!(copy.try_run().code(), "fixity.mismatch");
    assert_eq!(copy.texts(), before);
    put(&source, "\"3\"", &whole, &whole);
    run_equal(&copy, &source);
}

/// The attribute that change sets have is only recommended.
#[test]
fn a_list_of_changes_only_deletes_nothing_that_it_lacks() {
    let source = OldSource::new();
    let of = |names: &[&str]| {
        let entry = |name: &&str| {
            source.server.body(&format!("/{name}"), *name);
            let loc = source.server.url(&format!("/{name}"));
            let time = format!("<lastmod rs:type=\"created\">{}</lastmod>", source.now());
            format!("<url><loc>{loc}</loc>{time}</url>\n")
        };
        let entries: String = names.iter().map(entry).collect();
        source.server.body("/t.xml", document("urlset", "", &entries));
    };
    let mut copy = copy_at(&source, source.server.url("/t.xml"));
    of(&["a", "b"]);
    assert_eq!(copy.try_run().exit(), 0);
    of(&["c"]);
    let ran = copy.try_run();
    assert_eq!(ran.code(), "rs.type", "{:?}", ran.reported);
    assert_eq!(copy.paths(), ["a", "b"]);
    // With more it may be a Sitemap.
    of(&["a", "b", "c"]);
    assert_eq!(copy.try_run().exit(), 0);
    of(&["c"]);
    copy.options.max_delete = MaxDelete::Count(2);
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(copy.paths(), ["c"]);
}

#[test]
fn sites_lead_to_documents_of_both_versions() {
    let mut source = OldSource::new();
    some(&mut source, 2);
    let server = &source.server;
    let current = format!("current {CHANGE_SET}");
    let xrd = |rel: &str, href: &str| {
        format!(
            "<XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\"><Link rel=\"{rel}\" href=\"{href}\"/></XRD>"
        )
    };
    let json = |rel: &str, href: &str| {
        format!("{{\"links\":[{{\"rel\":\"{rel}\",\"href\":\"{href}\"}}]}}")
    };
    let page = |head: &str| format!("<!DOCTYPE html><html><head>{head}</head><body></body></html>");
    let html = page("<link rel=sitemap href=/s.xml>");
    let header = format!("</c.xml>; rel=\"{current}\"");
    let robots = format!("Sitemap: {}\n", source.url());
    let cases: [(&str, Answer); 5] = [
        ("/robots.txt", Answer::ok(robots)),
        ("/.well-known/host-meta", Answer::ok(xrd("sitemap", "/s.xml"))),
        ("/.well-known/host-meta.json", Answer::ok(json("sitemap", "/s.xml"))),
        ("/", Answer::ok(html)),
        ("/", Answer::ok(page("")).header("link", &header)),
    ];
    for (path, answer) in cases {
        server.put(path, answer);
        let copy = copy_at(&source, server.url("/"));
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{path}: {:?} {:?}", ran.result, ran.reported);
        assert!(ran.has("discover.found"), "{path}: {:?}", ran.codes);
        assert!(!ran.has("rs.no-md"), "{path}: {:?}", ran.reported);
        assert_eq!(copy.texts(), source.texts(), "{path}");
        assert!(!copy.try_run().has("discover.found"), "{path}");
        let mut strict = copy_at(&source, server.url("/"));
        strict.options.tolerance = Tolerance::Strict;
        let ran = strict.try_run();
        assert_eq!(ran.exit(), 0, "{path}: {:?} {:?}", ran.result, ran.reported);
        server.remove(path);
    }
    // The later version is preferred where there are both.
    server.body("/robots.txt", format!("Sitemap: {}\n", source.url()));
    let list = abreast_testkit::documents::document(
        "urlset",
        &format!("capability=\"resourcelist\" at=\"{BEGIN}\""),
        &format!("<url><loc>{}</loc></url>", server.url("/f00")),
    );
    server.body("/list.xml", list);
    server.body("/caps.xml", capability_list([("resourcelist", server.url("/list.xml"))]));
    let sets = capability_list([("capabilitylist", server.url("/caps.xml"))]);
    server.body(
        "/.well-known/resourcesync",
        sets.replace("\"capabilitylist\"/>\n", "\"description\"/>\n"),
    );
    let copy = copy_at(&source, server.url("/"));
    copy.run();
    assert_eq!(copy.paths(), ["f00"]);
    run_equal(&copy_of(&source), &source);
}

#[test]
fn one_of_several_sitemaps_is_chosen_and_never_silently() {
    let mut source = OldSource::new();
    some(&mut source, 2);
    let server = &source.server;
    let other = format!("<url><loc>{}</loc></url>", server.url("/g"));
    let other = document("urlset", "", &(modified("2026-01-01T00:00:00Z") + &other));
    server.body("/other/t.xml", other);
    server.body("/g", "of the other set");
    let xrd = "<XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\"><Link rel=\"sitemap\" \
               href=\"/s.xml\"/><Link rel=\"sitemap\" href=\"/other/t.xml\"/></XRD>";
    let json = "{\"links\":[{\"rel\":\"sitemap\",\"href\":\"/s.xml\"},\
                {\"rel\":\"sitemap\",\"href\":\"/other/t.xml\"},{\"rel\":\"sitemap\",\"href\":\"/s.xml\"}]}";
    let html = "<!DOCTYPE html><html><head><link rel=sitemap href=/s.xml>\
                <link rel=sitemap href=/other/t.xml></head><body></body></html>";
    let robots = format!("Sitemap: {}\nSitemap: {}\n", source.url(), server.url("/other/t.xml"));
    let header = "</s.xml>; rel=sitemap, </other/t.xml>; rel=sitemap";
    let cases: [(&str, &str, Answer); 7] = [
        ("/.well-known/host-meta", "/", Answer::ok(xrd)),
        ("/.well-known/host-meta", "/.well-known/host-meta", Answer::ok(xrd)),
        ("/.well-known/host-meta.json", "/", Answer::ok(json)),
        ("/.well-known/host-meta.json", "/.well-known/host-meta.json", Answer::ok(json)),
        ("/", "/", Answer::ok(html)),
        ("/page", "/page", Answer::ok("<!DOCTYPE html><html></html>").header("link", header)),
        ("/robots.txt", "/", Answer::ok(robots)),
    ];
    for (path, address, answer) in cases {
        server.put(path, answer);
        let mut copy = copy_at(&source, server.url(address));
        let ran = copy.try_run();
        assert_eq!((ran.code(), ran.exit()), ("discover.set", 2), "{path}: {:?}", ran.result);
        let message = ran.result.unwrap_err().to_string();
        assert!(message.contains("/s.xml") && message.contains("/other/t.xml"), "{message}");
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let sets = abreast_destination::source_sets(&copy.options, &cancel).unwrap();
        assert_eq!(sets.len(), 2, "{path} {address}: {sets:?}");

        copy.options.set = Some("t".to_owned());
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), copy.paths()),
            (0, vec!["g".to_owned()]),
            "{path}: {:?}",
            ran.result
        );
        // The copy remembers its set.
        copy.options.set = None;
        assert_eq!(copy.try_run().exit(), 0, "{path} {address}");
        copy.options.set = Some("s".to_owned());
        assert_eq!(copy.try_run().code(), "folder.source", "{path} {address}");
        server.remove(path);
    }
}

#[test]
fn mirrors_and_partial_content_are_used_and_verified() {
    let mut source = OldSource::new();
    let mirror = Server::start();
    let at_mirror = link("alternate http://www.openarchives.org/rs/mirror", &mirror.url("/m"));
    source.more.insert("/m".to_owned(), at_mirror);
    let body = format!("{{\"a\":1,\"b\":\"{}\"}}", "x".repeat(4_000));
    source.set("/j", &body);
    source.set("/m", "mirrored");
    source.snapshot();
    mirror.body("/m", "mirrored");
    source.server.put("/m", Answer::status(500));
    let copy = copy_of(&source).allowing(&mirror);
    let ran = run_equal(&copy, &source);
    assert!(ran.has("mirror.used"), "{:?}", ran.codes);
    // The digest in the Source's list is used, regardless of the mirror's content.
    source.set("/m", "mirrored 2");
    mirror.body("/m", "something else");
    run_equal(&copy, &source);

    let patch = |protocol: &str, href: &str| {
        format!(
            "<xhtml:link rel=\"http://www.openarchives.org/rs/partial\" rs:protocol=\"{protocol}\" href=\"{href}\"/>"
        )
    };
    let known = "https://www.iana.org/assignments/media-types/application/json-patch+json";
    let change =
        |number: u32| format!("[{{\"op\":\"replace\",\"path\":\"/a\",\"value\":{number}}}]");
    source.server.body("/p", change(2));
    source.set_with("/j", &body.replace(":1", ":2"), &patch(known, "/p"));
    source.server.take_log();
    run_equal(&copy, &source);
    assert!(!source.server.take_log().contains(&"/j".to_owned()));
    // An unknown protocol, and a patch that leads elsewhere: the whole is requested.
    for (number, protocol) in [(3, "http://example.com/protocols/changesonly"), (4, known)] {
        source.server.body("/p9", change(9));
        let next = body.replace(":1", &format!(":{number}"));
        source.set_with("/j", &next, &patch(protocol, "/p9"));
        run_equal(&copy, &source);
        assert!(source.server.take_log().contains(&"/j".to_owned()), "{protocol}");
    }
}

#[test]
fn addresses_of_other_protocols_are_no_resources() {
    let mut source = OldSource::new();
    some(&mut source, 2);
    let oai = format!(
        "<url><loc rs:protocol=\"http://www.openarchives.org/OAI/openarchivesprotocol.html\">{}</loc></url>",
        source.server.url("/oaipmh")
    );
    let sitemap = String::from_utf8(source.server.page("/s.xml")).unwrap();
    source.server.body("/s.xml", sitemap.replace("</urlset>", &format!("{oai}</urlset>")));
    source.server.body("/oaipmh", "<OAI-PMH/>");
    let copy = copy_of(&source);
    let ran = run_equal(&copy, &source);
    assert_eq!(ran.count("rs.protocol"), 1, "{:?}", ran.reported);
    let sitemap = String::from_utf8(source.server.page("/s.xml")).unwrap();
    let before = sitemap.split("<loc rs:protocol").next().unwrap();
    let place = format!("line {}: ", before.lines().count());
    assert!(
        ran.reported.iter().any(|it| it.message.starts_with(&place)),
        "{place} {:?}",
        ran.reported
    );
    assert!(!source.server.take_log().contains(&"/oaipmh".to_owned()));
}

#[test]
fn a_site_with_addresses_of_other_protocols_only_is_not_in_sync() {
    let source = OldSource::new();
    let (oai, url) =
        ("http://www.openarchives.org/OAI/openarchivesprotocol.html", source.server.url("/oaipmh"));
    for inside in [
        format!("<url><loc rs:protocol=\"{oai}\">{url}</loc></url>"),
        format!("<xhtml:link rel=\"alternate\" rs:protocol=\"{oai}\" href=\"{url}\"/>"),
    ] {
        source.server.body("/s.xml", document("urlset", "", &inside));
        let ran = copy_of(&source).try_run();
        assert_eq!(
            (ran.exit(), ran.code()),
            (4, "discover.oai-pmh"),
            "{inside} {:?}",
            ran.reported
        );
    }
}

#[test]
fn resources_that_expire_later_are_there_until_then() {
    let source = OldSource::new();
    let url = |path: &str| source.server.url(path);
    source.server.body("/a", "a");
    source.server.body("/b", "b");
    let entries = format!(
        "<url><loc>{}</loc><expires>2999-01-01</expires></url><url><loc>{}</loc><expires>2020-01-01</expires></url>",
        url("/a"),
        url("/b")
    );
    source.server.body("/s.xml", document("urlset", "", &(modified(BEGIN) + &entries)));
    let copy = copy_of(&source);
    copy.run();
    assert_eq!(copy.paths(), ["a"]);
}

#[test]
fn a_first_set_with_future_times_only_is_recognised() {
    let server = Server::start();
    let list =
        modified("2026-01-01T00:00:00.000001Z") + &link(&format!("current {CHANGE_SET}"), "/c.xml");
    server.body("/s.xml", document("urlset", "", &list));
    let entry = |path: &str, time: &str| {
        server.body(path, path);
        let loc = server.url(path);
        format!("<url><loc>{loc}</loc><lastmod rs:type=\"created\">{time}</lastmod></url>\n")
    };
    let publish = |time: &str, entries: &str| {
        let set = document("urlset", "rs:type=\"changeset\"", &(modified(time) + entries));
        server.body("/c.xml", set);
    };
    let future = entry("/a", &from_now(40 * 86_400_000_000).0);
    publish("2026-01-01T00:00:00.000001Z", &future);
    let mut copy = Copy::of(server.url("/s.xml"));
    copy.options.base = Some(server.url("/"));
    assert_eq!(copy.try_run().exit(), 0);
    let time = "2026-01-02T00:00:00.000001Z";
    publish(time, &(future + &entry("/b", time)));
    let ran = copy.try_run();
    assert!(ran.exit() == 0 && !ran.has("gap"), "{:?}", ran.reported);
    assert_eq!(copy.paths(), ["a", "b"]);
}

/// Whether a run would do something.
fn has_to_do(copy: &Copy) -> bool {
    let mut options = copy.options.clone();
    options.dry_run = true;
    let ran = Ran::sync(&options);
    ran.result.is_ok() && !ran.items.is_empty()
}

#[test]
fn a_version_is_kept_once_whatever_led_to_it() {
    let mut source = OldSource::new();
    let memento = link("memento", "/v1");
    source.server.body("/v1", "version 1");
    let timemap = format!(
        "<{}>; rel=\"memento\"; datetime=\"Wed, 01 Jan 2025 00:00:00 GMT\"",
        source.server.url("/v1")
    );
    source.set("/a", "1");
    let mut copy = copy_of(&source);
    copy.options.history = Some(5);
    let kept = |copy: &Copy| -> Vec<_> {
        let names = std::fs::read_dir(copy.options.folder.join(".abreast/history/a")).unwrap();
        names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect()
    };
    // First the list of versions cannot be read: no time is known.
    source.set_with("/a", "2", &(memento.clone() + &link("timemap", "/tm")));
    source.snapshot();
    run_equal(&copy, &source);
    assert!(kept(&copy)[0].starts_with("%@-"), "{:?}", kept(&copy));
    source.server.body("/tm", timemap);
    source.set_with("/a", "3", &link("timemap", "/tm"));
    run_equal(&copy, &source);
    assert_eq!(kept(&copy), ["%@20250101T000000Z"]);
    source.set_with("/a", "4", &(memento + &link("timemap", "/tm")));
    run_equal(&copy, &source);
    assert_eq!(kept(&copy), ["%@20250101T000000Z"]);
    let log = source.server.take_log();
    assert_eq!(log.iter().filter(|path| *path == "/v1").count(), 1, "{log:?}");
}

/// Any history, read at any times, in any shape: the copy is the Source at the end, and nothing that
/// is there was deleted on the way.
#[test]
fn any_history_read_at_any_times_is_the_source_at_the_end() {
    for seed in seeds(40) {
        let mut random = Random::new(seed);
        let mut below = |most: u64| random.below(most);
        let per_set = [1, 2, 5, 40][below(4) as usize];
        let shape = Shape {
            per_set,
            sitemaps: 1 + below(3) as usize,
            modified: below(3) > 0,
            fixity: below(3) > 0,
            // Otherwise no change set would ever list the only change of the previous one.
            prev: below(4) > 0 || per_set == 1,
            typed: below(3) > 0,
            unordered: below(2) > 0,
            step: [1, 60, 1_800][below(3) as usize],
            is_fine: below(3) > 0,
            is_zoneless: false,
            tombstones: below(2) > 0,
            etags: below(3) > 0,
            late: below(3) == 0,
        };
        let mut source = OldSource::of(shape.clone());
        let mut copy = copy_of(&source);
        copy.options.max_delete = MaxDelete::Percent(100.0);
        source.set("/always", "there");
        source.snapshot();
        for _ in 0..4 + below(8) {
            for _ in 0..below(7) {
                let path = format!("/r{}", below(6));
                if below(3) == 0 && source.kept.contains_key(&path) {
                    source.delete(&path);
                } else {
                    source.set(&path, &format!("{path} {}", below(1_000)));
                }
            }
            if below(4) == 0 {
                source.snapshot();
            }
            if below(8) == 0 {
                source.snapshot();
                source.prune();
            }
            let before = copy.texts();
            // If there are no digests, nothing shows that a file belongs to the killed run.
            if below(5) == 0 && shape.fixity && has_to_do(&copy) {
                let is_end =
                    |event: &Event<'_>| matches!(event, Event::Item(_) | Event::Summary(_));
                run_killed_at(&copy, &is_end);
            } else if below(3) > 0 {
                copy.try_run();
            }
            let after = copy.texts();
            for path in source.texts().keys().filter(|path| before.contains_key(*path)) {
                assert!(after.contains_key(path), "{seed}: {path} was deleted, {shape:?}");
            }
        }
        // The newest time of a Sitemap is that of a resource in it.
        source.set("/end", "there");
        source.snapshot();
        copy.try_run();
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{seed}: {:?} {:?} {shape:?}", ran.result, ran.reported);
        assert_eq!(copy.texts(), source.texts(), "{seed}: {shape:?} {:?}", ran.reported);
    }
}
