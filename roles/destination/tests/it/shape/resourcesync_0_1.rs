//! Documents of ResourceSync 0.1.

use super::scenes::{FIRST, NAMES, SECOND, Site};
use crate::rs01_source::{CHANGE_SET, document, fixity, link, modified};
use abreast_testkit::documents::BEGIN;
use abreast_testkit::zip::Zip;

pub(crate) fn serve(site: &Site<'_>) {
    for name in NAMES {
        site.server.body(name, "hello");
    }
    let one = |name: &str, more: &str| {
        format!("<url><loc>{}</loc>{more}{}</url>\n", site.url(name), fixity("hello"))
    };
    let listed = |name: &&str| one(name, "<lastmod>2025-06-01T00:00:00Z</lastmod>");
    let list = |names: &[&str]| names.iter().map(listed).collect::<String>();
    let (kept, now) = (site.kept(), modified(site.now()));
    site.put("/old.xml", document("urlset", "", &(now.clone() + &list(kept))));
    let members = ["/old-one.xml", "/old-two.xml"]
        .map(|path| format!("<sitemap><loc>{}</loc></sitemap>\n", site.url(path)));
    site.put("/old-index.xml", document("sitemapindex", "", &(now.clone() + &members.concat())));
    site.put("/old-one.xml", document("urlset", "", &(now.clone() + &list(&kept[..2]))));
    site.put("/old-two.xml", document("urlset", "", &(now.clone() + &list(&kept[2..]))));

    let mut zip = Zip::new();
    let member = |name: &&str| {
        listed(name).replace("</url>", &format!("<rs:path>{}</rs:path></url>", &name[1..]))
    };
    for name in kept {
        zip.add(&name[1..], b"hello");
    }
    let entries = now.clone() + &kept.iter().map(member).collect::<String>();
    let manifest = site.edited("/old.zip", document("urlset", "", &entries));
    zip.add("manifest.xml", manifest.as_bytes());
    site.server.body("/old.zip", zip.finish());

    let head = modified(BEGIN) + &link(&format!("current {CHANGE_SET}"), "/c.xml");
    site.put("/old-begin.xml", document("urlset", "", &(head + &list(&NAMES[..4]))));
    let mut changes = now + &link(&format!("current {CHANGE_SET}"), "/c.xml");
    changes += &one("/a", &format!("<lastmod rs:type=\"updated\">{FIRST}</lastmod>"));
    if site.is_later {
        changes += &one("/e", &format!("<lastmod rs:type=\"created\">{SECOND}</lastmod>"));
        for name in ["/b", "/x"] {
            let loc = site.url(name);
            changes += &format!("<url><loc>{loc}</loc><expires>{SECOND}</expires></url>\n");
        }
    }
    site.put("/c.xml", document("urlset", "rs:type=\"changeset\"", &changes));
}
