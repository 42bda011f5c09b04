//! Documents of ResourceSync 1.1.

use super::scenes::{FIRST, NAMES, SECOND, Site};
use abreast_testkit::documents::{BEGIN, capability_list, document, entry};
use abreast_testkit::zip::Zip;

pub(crate) fn serve(site: &Site<'_>) {
    for name in NAMES {
        site.server.body(name, "hello");
    }
    let described = format!(
        "<url><loc>{}</loc><rs:md capability=\"capabilitylist\"/></url>\n",
        site.url("/caps.xml")
    );
    let source = document("urlset", "capability=\"description\"", &described);
    site.put("/.well-known/resourcesync", source);
    for (path, offered) in [
        ("/caps.xml", &[("resourcelist", "/begin.xml"), ("changelist", "/changes.xml")][..]),
        (
            "/caps-of-index.xml",
            &[("resourcelist", "/begin.xml"), ("changelist", "/changelists.xml")],
        ),
        ("/caps-of-dump.xml", &[("resourcedump", "/dump.xml")]),
    ] {
        site.put(path, capability_list(offered.iter().map(|(name, path)| (*name, site.url(path)))));
    }
    lists(site);
    changes(site);
}

fn members(site: &Site<'_>, element: &str, paths: &[&str]) -> String {
    paths
        .iter()
        .map(|path| format!("<{element}><loc>{}</loc></{element}>\n", site.url(path)))
        .collect()
}

fn lists(site: &Site<'_>) {
    let list = |names: &[&str]| -> String {
        names.iter().map(|name| entry(&site.url(name), b"hello", "")).collect()
    };
    let (kept, at) = (site.kept(), format!("at=\"{}\"", site.now()));
    let own = format!("capability=\"resourcelist\" {at}");
    let begin = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
    site.put("/begin.xml", document("urlset", &begin, &list(&NAMES[..4])));
    site.put("/list.xml", document("urlset", &own, &list(kept)));
    site.put(
        "/lists.xml",
        document("sitemapindex", &own, &members(site, "sitemap", &["/one.xml", "/two.xml"])),
    );
    site.put("/one.xml", document("urlset", &own, &list(&kept[..2])));
    site.put("/two.xml", document("urlset", &own, &list(&kept[2..])));
    site.put("/sitemap.xml", document("urlset", "", &list(kept)).replace("<rs:md />\n", ""));
    let dump = format!("capability=\"resourcedump\" {at}");
    site.put(
        "/dump.xml",
        document("urlset", &dump, &members(site, "url", &["/dump.zip", "/more.zip"])),
    );
    for (path, kept) in [("/dump.zip", &kept[..2]), ("/more.zip", &kept[2..])] {
        let mut zip = Zip::new();
        let one = |name: &&str| entry(&site.url(name), b"hello", &format!("path=\"{name}\""));
        let entries: String = kept.iter().map(one).collect();
        for name in kept {
            zip.add(&name[1..], b"hello");
        }
        let own = format!("capability=\"resourcedump-manifest\" {at}");
        zip.add("manifest.xml", site.edited(path, document("urlset", &own, &entries)).as_bytes());
        site.server.body(path, zip.finish());
    }
}

fn changes(site: &Site<'_>) {
    let change = |name: &str, kind: &str, time: &str| {
        entry(&site.url(name), b"hello", &format!("change=\"{kind}\" datetime=\"{time}\""))
    };
    let mut entries = change("/a", "updated", FIRST);
    if site.is_later {
        entries += &change("/e", "created", SECOND);
        entries += &change("/b", "deleted", SECOND);
        entries += &change("/x", "deleted", SECOND);
    }
    let own = format!("capability=\"changelist\" from=\"{BEGIN}\"");
    site.put("/changes.xml", document("urlset", &own, &entries));
    let before =
        format!("capability=\"changelist\" from=\"2025-01-01T00:00:00Z\" until=\"{BEGIN}\"");
    site.put("/before.xml", document("urlset", &before, ""));
    let lists = members(site, "sitemap", &["/before.xml", "/changes.xml"]);
    site.put("/changelists.xml", document("sitemapindex", &own, &lists));
}
