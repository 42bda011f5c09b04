//! Plain Sitemap indexes, which show nothing of ResourceSync 0.1, over documents that do.

use crate::copy::Copy;
use crate::rs01_source::{document, modified};
use abreast_testkit::documents::BEGIN;
use abreast_testkit::pages::Server;

const OAI_PMH: &str = "http://www.openarchives.org/OAI/openarchivesprotocol.html";

/// A Source with these documents, and two resources.
fn source(documents: &[(&str, String)]) -> (Server, Copy) {
    let server = Server::start();
    server.body("/a", "a");
    server.body("/b", "b");
    for (path, text) in documents {
        server.body(path, text.replace("{B}", server.url("").trim_end_matches('/')));
    }
    let mut copy = Copy::of(server.url("/index.xml"));
    copy.options.base = Some(server.url("/"));
    (server, copy)
}

fn index(paths: &[&str]) -> String {
    let entry = |path: &&str| format!("<sitemap><loc>{{B}}{path}</loc></sitemap>");
    document("sitemapindex", "", &paths.iter().map(entry).collect::<String>())
}

fn entry(path: &str, more: &str) -> String {
    format!("<url><loc>{{B}}{path}</loc>{more}</url>")
}

/// One resource, and one that was deleted.
fn sitemap(head: &str) -> String {
    let entries = entry("/a", "") + &entry("/b", "<expires>2020-01-01T00:00:00Z</expires>");
    document("urlset", "", &(head.to_owned() + &entries))
}

fn oai_pmh() -> String {
    let entry = format!("<url><loc rs:protocol=\"{OAI_PMH}\">{{B}}/oaipmh</loc></url>");
    document("urlset", "", &entry)
}

#[test]
fn deletions_below_a_plain_index_are_read() {
    for head in [modified(BEGIN), String::new()] {
        for documents in [
            vec![("/index.xml", index(&["/s.xml"])), ("/s.xml", sitemap(&head))],
            vec![
                ("/index.xml", index(&["/inner.xml"])),
                ("/inner.xml", index(&["/s.xml"])),
                ("/s.xml", sitemap(&head)),
            ],
        ] {
            let (_server, copy) = source(&documents);
            let ran = copy.try_run();
            assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
            assert_eq!(copy.paths(), ["a"], "{head} {:?}", ran.reported);
            assert_eq!(copy.try_run().exit(), 0);
        }
    }
}

#[test]
fn plain_indexes_of_robots_txt_are_judged_by_their_sitemaps() {
    let (server, _) = source(&[
        ("/index.xml", index(&["/s.xml"])),
        ("/s.xml", sitemap(&modified(BEGIN))),
        ("/robots.txt", "Sitemap: {B}/index.xml\n".to_owned()),
    ]);
    let mut copy = Copy::of(server.url("/"));
    copy.options.base = Some(server.url("/"));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
    assert_eq!(copy.paths(), ["a"], "{:?}", ran.reported);
}

#[test]
fn addresses_of_oai_pmh_below_a_plain_index_are_no_copy() {
    let (_server, copy) = source(&[("/index.xml", index(&["/s.xml"])), ("/s.xml", oai_pmh())]);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (4, "discover.oai-pmh"), "{:?}", ran.reported);
}

#[test]
fn a_later_sitemap_of_0_1_below_a_plain_index_is_a_failure() {
    let plain = document("urlset", "", &entry("/a", ""));
    let typed =
        document("urlset", "", &entry("/b", "<lastmod rs:type=\"updated\">2026-01-01</lastmod>"));
    let expired = document("urlset", "", &entry("/b", "<expires>2020-01-01T00:00:00Z</expires>"));
    for late in [oai_pmh(), typed, expired] {
        let (_server, copy) = source(&[
            ("/index.xml", index(&["/plain.xml", "/late.xml"])),
            ("/plain.xml", plain.clone()),
            ("/late.xml", late),
        ]);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 3, "{:?} {:?}", ran.result, ran.reported);
        assert!(ran.has("rs.version"), "{:?}", ran.reported);
        assert_eq!(copy.paths(), ["a"]);
    }
}
