//! Copies of Sources that have another address now.

use crate::contract::kills::run_killed_at;
use crate::contract::{SinkCase, seen, sinks};
use crate::copy::{Copy, Ran};
use crate::emm_source::{self, EmmSource};
use crate::rdf::quads;
use crate::rs01_source::OldSource;
use crate::sdshare_source::{self, SdSource};
use crate::source::Source;
use abreast_destination::{Event, MaxDelete, NQuadsOptions, SinkOptions, Summary, WarcOptions};
use abreast_testkit::http;
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::tls::Authority;
use serde_json::json;
use std::collections::BTreeMap;

const PATHS: [&str; 4] = ["/a", "/b", "/d/c", "/d/e"];

/// A Source of 1.1 with resources below a path.
fn source_below(top: &str) -> Source {
    filled(Source::new(), top)
}

fn filled(mut source: Source, top: &str) -> Source {
    for path in PATHS {
        source.set(&format!("{top}{path}"), &format!("text of {path}"));
    }
    source.snapshot();
    source
}

fn old_source() -> OldSource {
    let mut source = OldSource::new();
    for path in PATHS {
        source.set(path, &format!("text of {path}"));
    }
    source.snapshot();
    source
}

/// The copy with another address, to which the Source has moved.
fn moved_to(mut copy: Copy, url: String) -> Copy {
    copy.options.url = url;
    copy.options.moved = true;
    copy
}

fn is_resource(path: &str) -> bool {
    PATHS.iter().any(|known| path.ends_with(known))
        || path.contains("/id/")
        || path.contains("/manifest/")
        || path.contains("/fragment/")
}

/// Refuses an address without `--moved`, moves with it, and does nothing more in later runs. The
/// resource `newest` may be requested: where its URI or the time of its change is not distinct.
#[track_caller]
fn follows(copy: Copy, url: String, server: &Server, (what, newest): (&str, Option<&str>)) -> Copy {
    let counted = |ran: &Ran<_>| {
        let is_newest = |uri: &str| newest.is_some_and(|name| uri.ends_with(&format!("/{name}")));
        ran.items.iter().filter(|item| !is_newest(&item.uri)).count()
    };
    let before = copy.texts();
    let mut copy = moved_to(copy, url);
    copy.options.moved = false;
    let refused = copy.try_run();
    assert_eq!(refused.code(), "folder.source", "{what}: {:?}", refused.result);
    let text = format!("{}", refused.result.unwrap_err());
    assert!(!text.contains("--allow-host"), "{text}");
    copy.options.moved = true;
    copy.options.dry_run = true;
    server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("source.moved")), (0, 1), "{what}: {:?}", ran.reported);
    assert_eq!((counted(&ran), copy.texts()), (0, before.clone()), "{what}: {:?}", ran.items);
    copy.options.dry_run = false;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("source.moved")), (0, 1), "{what}: {:?}", ran.reported);
    assert_eq!((ran.items.len(), copy.texts()), (0, before.clone()), "{what}: {:?}", ran.items);
    let is_newest = |path: &String| {
        newest.is_some_and(|name| path.trim_end_matches(".nt").ends_with(&format!("/{name}")))
    };
    let fetched =
        server.take_log().into_iter().filter(|path| is_resource(path)).filter(|it| !is_newest(it));
    let fetched: Vec<_> = fetched.collect();
    assert_eq!(fetched, Vec::<String>::new(), "{what}: nothing is fetched again");
    for is_moved in [true, false] {
        copy.options.moved = is_moved;
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), ran.codes.len(), ran.items.len()),
            (0, 0, 0),
            "{what}: {:?}",
            ran.reported
        );
        assert_eq!(copy.audit(true).exit_code, 0, "{what}");
    }
    assert_eq!(copy.texts(), before, "{what}");
    copy
}

#[test]
fn copies_follow_their_source_to_another_server_or_path() {
    for top in ["", "/new"] {
        let (source, mut new) = (source_below(""), source_below(top));
        let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
        assert_eq!(copy.run().created, 4);
        let copy = follows(copy, new.url(), &new.server, (top, None));
        new.set(&format!("{top}/a"), "changed there");
        new.delete(&format!("{top}/d/e"));
        let ran = copy.run();
        assert_eq!((ran.updated, ran.deleted, ran.created), (1, 1, 0));
        assert_eq!(copy.read("a").unwrap(), "changed there");
        assert_eq!(copy.paths(), ["a", "b", "d/c"]);
    }
}

/// The documents, and their links, get URLs with another start.
fn rename(source: &mut Source, base: &str, documents: &[&str]) {
    let old = std::mem::replace(&mut source.server.base, base.to_owned());
    for path in documents {
        let page = String::from_utf8(source.server.page(path)).unwrap();
        source.server.body(path, page.replace(&old, base));
    }
    source.changes = source.changes.replace(&old, base);
}

const LISTS: [&str; 2] = ["/resourcelist.xml", "/changelist.xml"];
const DOCUMENTS: [&str; 3] = ["/caps.xml", LISTS[0], LISTS[1]];

/// A Source on a port that has TLS too, and a copy that trusts its certificate; the start of its
/// https URLs.
fn with_tls() -> (Source, Copy, String, http::Server) {
    let authority = Authority::default();
    let mut server = Server::start();
    let front = authority.server(&["127.0.0.1"], false).serve_for(server.address());
    server.base = front.url("");
    let source = filled(Source::on(server), "");
    let mut copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    let roots = copy.place.path().join("roots.pem");
    std::fs::write(&roots, authority.pem()).unwrap();
    copy.options.net.extra_roots = Some(roots);
    let secure = source.server.base.replace("http://", "https://");
    (source, copy, secure, front)
}

#[test]
fn a_copy_follows_its_source_from_http_to_https() {
    let (mut source, copy, secure, _front) = with_tls();
    assert_eq!(copy.run().created, 4);
    rename(&mut source, &secure, &DOCUMENTS);
    // The old address has the new documents.
    let refused = copy.try_run();
    let text = format!("{:?}", refused.result);
    assert_eq!(refused.code(), "list.elsewhere", "{text}");
    assert!(text.contains(&format!("abreast sync {secure}/caps.xml")), "{text}");
    assert!(text.contains("--moved") && !text.contains("--allow"), "{text}");
    let mut copy = follows(copy, source.url(), &source.server, ("https", None));
    source.set("/a", "changed there");
    source.set("/f", "new");
    source.delete("/d/e");
    let ran = copy.run();
    assert_eq!((ran.updated, ran.deleted, ran.created, ran.exit_code), (1, 1, 1, 0));
    copy.options.baseline = true;
    source.snapshot();
    assert_eq!((copy.run().unchanged, copy.audit(true).exit_code), (4, 0));
    assert_eq!(copy.paths(), ["a", "b", "d/c", "f"]);
}

#[test]
fn a_copy_is_moved_only_to_resources_that_are_allowed() {
    for is_downgrade in [true, false] {
        let (mut source, mut copy, secure, _front) = with_tls();
        let other = source_below("");
        let to = if is_downgrade { &source.server.base } else { &other.server.base }.clone();
        if is_downgrade {
            rename(&mut source, &secure, &DOCUMENTS);
        }
        copy.options.url = source.url();
        assert_eq!(copy.run().created, 4);
        let before = copy.texts();
        rename(&mut source, &to, &LISTS);
        let refused = copy.try_run();
        let text = format!("{:?}", refused.result);
        assert_eq!((refused.code(), copy.texts()), ("list.elsewhere", before.clone()), "{text}");
        assert!(text.contains(" --moved"), "{text}");
        assert_eq!(text.contains(" --allow-downgrade"), is_downgrade, "{text}");
        copy.options.moved = true;
        let refused = copy.try_run();
        let text = format!("{:?} {:?}", refused.result, refused.reported);
        let code = if is_downgrade { "http.downgrade" } else { "uri.authority" };
        assert_eq!((refused.code(), copy.texts()), (code, before.clone()), "{text}");
        // The help depends on what has moved: the Source, or only its resources.
        let ways = if is_downgrade {
            ["--allow-downgrade"; 2]
        } else {
            ["`--moved`", "--allow-host 127.0.0.1:"]
        };
        assert!(ways.iter().all(|way| text.contains(way)), "{text}");
        if is_downgrade {
            copy.options.allow_downgrade = true;
        } else {
            copy = copy.allowing(&other.server);
        }
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?}", ran.reported);
        assert_eq!((copy.texts(), copy.audit(true).exit_code), (before, 0));
    }
}

#[test]
fn what_changed_during_a_move_is_brought_up_to_date() {
    let (source, mut new) = (source_below(""), source_below(""));
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    copy.run();
    new.set("/b", "changed meanwhile");
    new.set("/f", "new");
    new.delete("/a");
    new.snapshot();
    new.server.take_log();
    let copy = moved_to(copy, new.url());
    let ran = copy.run();
    assert_eq!((ran.created, ran.updated, ran.deleted, ran.unchanged), (1, 1, 1, 2), "{ran:?}");
    assert_eq!(copy.paths(), ["b", "d/c", "d/e", "f"]);
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn copies_of_0_1_follow_their_source() {
    let (source, new) = (old_source(), old_source());
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    assert_eq!(copy.run().created, 4);
    copy.options.base = None;
    let mut copy = follows(copy, new.url(), &new.server, ("0.1", None));
    copy.options.base = Some(new.server.url("/"));
    assert_eq!(copy.run().exit_code, 0);
}

#[test]
fn copies_of_entities_follow_a_feed_to_another_address() {
    for in_folder in [true, false] {
        for (is_emm, is_dumped) in [(true, true), (true, false), (false, true)] {
            let what = format!("folder: {in_folder}, EMM: {is_emm}, download: {is_dumped}");
            let (old, new, url, server);
            let emm = EmmSource::start(emm_source::Habits::default());
            let sdshare = SdSource::start(sdshare_source::Habits::default());
            if is_emm {
                (0..5).for_each(|number| emm.put(number, "first"));
                emm.wait_days(1);
                if is_dumped {
                    emm.make_download();
                }
                old = emm.url();
                let moved = emm.at_another_address();
                (url, server) = (moved.url(), moved.server.clone());
                new = Some(moved);
            } else {
                (0..5).for_each(|number| sdshare.put_number(number, "first"));
                sdshare.wait(5);
                sdshare.make_snapshot();
                old = sdshare.url();
                let moved = sdshare.at_another_address();
                (url, server) = (moved.url(), moved.server.clone());
                new = None;
            }
            let mut copy = Copy::of(old);
            copy.options.allow_hosts.push("127.0.0.1".to_owned());
            if !in_folder {
                copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
            }
            assert_eq!(copy.run().created, 5, "{what}");
            let newest = (!is_dumped).then_some("4");
            let copy = follows(copy, url, &server, (&what, newest));
            if let Some(moved) = &new {
                moved.wait_days(1);
                moved.put(1, "second");
            } else {
                sdshare.wait(5);
                sdshare.put_number(1, "second");
            }
            let ran = copy.run();
            assert_eq!((ran.updated, ran.created, ran.exit_code), (1, 0, 0), "{what}");
            if !in_folder {
                assert_eq!(quads(copy.folder()).len(), 15, "{what}");
            }
        }
    }
}

/// A feed of files on its own server, without a list of all.
fn iiif() -> Server {
    let server = Server::start();
    let link = |path: &str, kind: &str| json!({"id": server.url(path), "type": kind});
    let mut items = Vec::new();
    for number in 0..4 {
        let path = format!("/manifest/{number}");
        server.body(&path, format!("{{\"label\": \"file {number}\"}}"));
        let id = server.url(&format!("/activity/{number}"));
        let time = format!("2026-01-01T00:00:0{number}.5Z");
        items.push(
            json!({"id": id, "type": "Update", "object": link(&path, "Manifest"), "endTime": time}),
        );
    }
    let context = "http://iiif.io/api/discovery/1/context.json";
    let page = link("/page", "OrderedCollectionPage");
    let documents = [
        ("/all", json!({"first": page, "last": page}), link("/all", "OrderedCollection")),
        ("/page", json!({"orderedItems": items}), page.clone()),
    ];
    for (path, mut document, named) in documents {
        document["@context"] = json!(context);
        (document["id"], document["type"]) = (named["id"].clone(), named["type"].clone());
        let answer = Answer::ok(document.to_string());
        server.put(path, answer.header("content-type", "application/ld+json"));
    }
    server
}

#[test]
fn files_of_a_feed_are_kept_where_their_server_has_another_name() {
    let (old, new) = (iiif(), iiif());
    let copy = Copy::of(old.url("/all"));
    assert_eq!(copy.run().created, 4);
    follows(copy, new.url("/all"), &new, ("IIIF", Some("3")));
}

#[test]
fn another_set_is_refused_and_the_copy_left_as_it_is() {
    let source = source_below("");
    let mut others = Source::new();
    for path in PATHS {
        others.set(path, &format!("other text of {path}"));
    }
    others.snapshot();
    let mut strangers = Source::new();
    (0..5).for_each(|number| strangers.set(&format!("/{number}"), "text"));
    strangers.snapshot();
    let empty = Source::new();
    for other in [&others, &strangers, &empty] {
        let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
        copy.run();
        let before = copy.texts();
        let mut copy = moved_to(copy, other.url());
        let refused = copy.try_run();
        assert_eq!(refused.code(), "folder.source", "{:?}", refused.reported);
        assert!(refused.result.unwrap_err().to_string().contains("nothing was changed"));
        assert_eq!(copy.texts(), before);
        copy.options.url = source.url();
        copy.options.moved = false;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?}", ran.reported);
    }
}

#[test]
fn a_move_that_is_killed_is_completed_by_the_next_run() {
    let (source, new) = (source_below(""), source_below(""));
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    copy.run();
    let before = copy.texts();
    let mut copy = moved_to(copy, new.url());
    let is_moved =
        |event: &Event<'_>| matches!(event, Event::Notice(it) if it.code == "source.moved");
    run_killed_at(&copy, &is_moved);
    copy.options.moved = false;
    copy.options.url = source.url();
    let refused = copy.try_run();
    assert_eq!(refused.code(), "folder.source");
    let text = format!("{:?}", refused.result.unwrap_err());
    assert!(text.contains("being moved") && text.contains(&new.url()), "{text}");
    copy.options.url = new.url();
    new.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?}", ran.reported);
    assert!(!new.server.take_log().iter().any(|path| is_resource(path)));
    assert_eq!((copy.texts(), copy.audit(true).exit_code), (before, 0));
}

/// A copy that contains URIs also belongs to its Source at the new address: resources with new URIs
/// are copied, and resources with old URIs are deleted, as far as allowed.
#[test]
fn what_has_uris_in_itself_is_copied_again_under_new_ones() {
    const COUNT: u64 = 12;
    let mut cases = sinks();
    cases.retain(|case| !["folder", "objects"].contains(&case.name));
    for (case, names_it_again) in cases.iter().flat_map(|case| [(case, false), (case, true)]) {
        let SinkCase { name, source, sink, read } = *case;
        let many = || {
            let mut source = source();
            (0..COUNT).for_each(|number| source.set(&format!("/d/{number}"), "text"));
            source.snapshot();
            source
        };
        let (old, mut new) = (many(), many());
        let mut copy = Copy::kept_in(&old, sink);
        copy.run();
        let state = copy.options.state.clone();
        copy = moved_to(copy, new.url());
        copy.options.moved = false;
        assert_eq!(copy.try_run().code(), "folder.source", "{name}");
        copy.options.moved = true;
        copy.options.dry_run = true;
        let ran = copy.try_run();
        let what = format!("{name}: {:?}", ran.reported);
        assert_eq!((ran.count("source.moved"), ran.summary().created), (1, COUNT), "{what}");
        copy.options.dry_run = false;
        let ran = copy.try_run();
        let what = format!("{name}: {:?}", ran.reported);
        let message = ran.reported.iter().find(|it| it.code == "source.moved").expect(&what);
        assert!(message.message.contains("--max-delete 100%"), "{what}");
        let Summary { created, deleted, held, .. } = *ran.summary();
        // The same bytes with another URI are not a loss; a description contains its IRI.
        let (due, exit) = if name == "warc" { (0, 0) } else { (COUNT, 7) };
        assert_eq!((created, deleted, held, ran.exit()), (COUNT, COUNT - due, due, exit), "{what}");
        copy.options.moved = names_it_again;
        copy.options.max_delete = MaxDelete::Percent(100.0);
        let ran = copy.try_run();
        let what = format!("{name}: {:?}", ran.reported);
        let Summary { created, deleted, held, .. } = *ran.summary();
        assert_eq!((created, deleted, held, ran.exit()), (0, due, 0, 0), "{what}");
        let ran = copy.try_run();
        assert_eq!((ran.items.len(), ran.codes.len(), ran.exit()), (0, 0, 0), "{name}");
        if name == "warc" {
            // The history of the old address stays.
            let index: String = copy
                .texts()
                .into_iter()
                .filter_map(|(path, text)| path.starts_with("indexes/").then_some(text))
                .collect();
            let count = |base: &str| index.matches(&format!("\"{base}/d/")).count() as u64;
            assert_eq!((count(&old.server.base), count(&new.server.base)), (COUNT, COUNT));
        } else {
            assert_eq!(seen(&read(&copy, &new)), seen(&new.kept), "{name}");
        }
        assert_eq!((copy.audit(true).exit_code, &copy.options.state), (0, &state), "{name}");
        new.set("/d/1", "changed");
        assert_eq!((copy.run().updated, copy.audit(true).exit_code), (1, 0), "{name}");
    }
}

#[test]
fn a_feed_without_a_list_is_not_followed_to_other_uris() {
    let (old, new) = (iiif(), iiif());
    let mut copy = Copy::of(old.url("/all"));
    copy.options.sink = SinkOptions::Warc(WarcOptions::default());
    assert_eq!(copy.run().created, 4);
    copy.options.url = new.url("/all");
    copy.options.moved = true;
    let refused = copy.try_run();
    assert_eq!(refused.code(), "folder.source", "{:?}", refused.reported);
    assert!(format!("{:?}", refused.result).contains("another place"));
    copy.options.url = old.url("/all");
    assert_eq!(copy.run().exit_code, 0);
}

/// The server of the old address redirects all requests to the new one.
#[test]
fn a_redirect_of_the_known_address_is_recognised() {
    let (source, new) = (source_below(""), source_below(""));
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    copy.run();
    let before = copy.texts();
    let to = new.server.base.clone();
    source.server.handler(move |target, _| {
        let location = format!("{to}{target}");
        Some(Answer::status(301).header("location", &location))
    });
    let mut copy = copy;
    for baseline in [true, false] {
        copy.options.baseline = baseline;
        let refused = copy.try_run();
        if baseline {
            let error = refused.result.unwrap_err();
            assert_eq!(error.code(), "list.elsewhere", "{error}");
            let help = error.help().unwrap();
            assert!(help.contains(&format!("abreast sync {}", new.url())), "{help}");
            assert!(help.contains("--moved") && !help.contains("--allow-host"), "{help}");
        }
        assert_eq!(copy.texts(), before);
    }
    copy.options.url = new.url();
    let refused = copy.try_run();
    assert_eq!(refused.code(), "folder.source");
    let text = refused.result.unwrap_err().to_string();
    assert!(text.contains("redirects to") && text.contains("--moved"), "{text}");
    copy.options.moved = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?}", ran.reported);
    assert_eq!((copy.texts(), copy.audit(true).exit_code), (before, 0));
}

/// Documents remain at their address, and the resources have another server.
#[test]
fn resources_that_moved_without_their_documents_are_kept() {
    let (mut source, new) = (source_below(""), source_below(""));
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    copy.run();
    let before = copy.texts();
    let (url, to) = (source.url(), new.server.base.clone());
    rename(&mut source, &to, &LISTS);
    let mut copy = moved_to(copy, url).allowing(&new.server);
    for is_first in [true, false] {
        new.server.take_log();
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?}", ran.reported);
        assert_eq!(ran.count("source.moved"), usize::from(is_first));
        assert!(!new.server.take_log().iter().any(|path| is_resource(path)));
        assert_eq!((copy.texts(), copy.audit(true).exit_code), (before.clone(), 0));
    }
    copy.options.moved = false;
    assert_eq!(copy.run().exit_code, 0);
    // The move is done.
    copy.options.url = new.url();
    let refused = copy.try_run().result.unwrap_err();
    assert!(refused.code() == "folder.source" && !refused.to_string().contains("being moved"));
}

/// The old address leads to documents that name resources at the new one.
#[test]
fn no_other_host_is_suggested_where_all_resources_have_left() {
    for by_changes in [true, false] {
        for allows in [true, false] {
            let what = format!("changes: {by_changes}, allows: {allows}");
            let (mut source, new) = (source_below(""), source_below(""));
            let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
            copy.run();
            let before = copy.texts();
            if by_changes {
                source.set("/a", "changed");
                source.set("/b", "changed");
            }
            let (from, to) = (source.server.base.clone(), new.server.base.clone());
            let pages: BTreeMap<_, _> = ["/resourcelist.xml", "/changelist.xml"]
                .into_iter()
                .map(|path| (path, String::from_utf8(source.server.page(path)).unwrap()))
                .collect();
            source.server.handler(move |target, _| {
                pages.get(target).map(|page| Answer::ok(page.replace(&from, &to)))
            });
            let mut copy = if allows { copy.allowing(&new.server) } else { copy };
            copy.options.baseline = !by_changes;
            let Ran { result, reported, .. } = copy.try_run();
            let error = result.expect_err(&format!("{what}: {reported:?}"));
            assert_eq!(error.code(), "list.elsewhere", "{what}: {error}");
            let help = error.help().unwrap();
            assert!(help.contains("--moved") && !help.contains("--allow-host"), "{what}: {help}");
            assert_eq!(copy.texts(), before, "{what}");
        }
    }
}
