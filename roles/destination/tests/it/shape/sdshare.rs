//! Feeds of SDShare.

use super::scenes::{NAMES, SECOND, Site};
use crate::sdshare_source::ATOM;
use abreast_testkit::pages::Answer;

const N_TRIPLES: &str = "application/n-triples";

/// The statement about a resource.
pub(crate) fn statement(site: &Site<'_>, name: &str) -> String {
    format!("<{}> <http://ns.example/text> \"hello\" .\n", site.url(name))
}

fn link(relation: &str, href: &str, media_type: &str) -> String {
    format!(
        "<link rel=\"http://www.sdshare.org/2012/core/{relation}\" type=\"{media_type}\" href=\"{href}\"/>\
         <link rel=\"alternate\" type=\"{media_type}\" href=\"{href}\"/>"
    )
}

fn entry(id: &str, updated: &str, more: &str) -> String {
    format!(
        "<entry><id>urn:x:{id}</id><title>e</title><updated>{updated}</updated>{more}</entry>\n"
    )
}

fn feed(site: &Site<'_>, entries: &str) -> String {
    let updated = site.now();
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"http://www.sdshare.org/2012/core/\"><id>urn:x:f</id>\
         <title>t</title><author><name>a</name></author><updated>{updated}</updated>\n{entries}</feed>"
    )
}

pub(crate) fn serve(site: &Site<'_>) {
    let now = site.now();
    site.put(
        "/overview",
        feed(site, &entry("o", now, &link("collectionfeed", "/collection", ATOM))),
    );
    let feeds = [("snapshotsfeed", "/snapshots"), ("fragmentsfeed", "/fragments")]
        .map(|(relation, to)| entry(relation, now, &link(relation, to, ATOM)));
    site.put("/collection", feed(site, &feeds.concat()));
    let old = entry("old", "2025-01-01T00:00:00Z", &link("snapshot", "/none", N_TRIPLES));
    let chunked = link("snapshot", "/none", N_TRIPLES) + &link("chunked-snapshot", "/chunks", ATOM);
    site.put("/snapshots", feed(site, &(old + &entry("new", now, &chunked))));
    let chunks = ["/one", "/two"]
        .map(|path| entry(&path[1..], now, &link("snapshot-component", path, N_TRIPLES)));
    site.put("/chunks", feed(site, &chunks.concat()));
    let put = |path: &str, statements: String| {
        site.server.put(path, Answer::ok(statements).header("content-type", N_TRIPLES));
    };
    let kept = site.kept();
    for (path, names) in [("/one", &kept[..2]), ("/two", &kept[2..])] {
        put(path, names.iter().map(|name| statement(site, name)).collect());
    }
    for name in NAMES {
        put(&format!("/fragment{name}"), statement(site, name));
    }
    put("/fragment/b", String::new());
    let mut fragments = String::new();
    for name in ["/e", "/b"].iter().filter(|_| site.is_later) {
        let resource = format!("<s:resource>{}</s:resource>", site.url(name));
        let link = link("fragment", &format!("/fragment{name}"), N_TRIPLES);
        fragments += &entry(&name[1..], SECOND, &(link + &resource));
    }
    // Requests may contain any time in `since`.
    let fragments = site.edited("/fragments", feed(site, &fragments));
    site.server.handler(move |target, _| {
        target.starts_with("/fragments").then(|| Answer::ok(fragments.as_str()))
    });
}
