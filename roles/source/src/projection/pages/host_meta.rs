//! `host-meta`: links to the entry points of the site, as XRD and as JSON [rfc6415 §2, §3].

use crate::publish::Rendered;
use crate::publish::publisher::Publisher;
use abreast_webtypes::Link;
use abreast_webtypes::xml::write_escaped;
use serde_json::{Map, Value, json};

/// Parameter of a link whose target is a template with `{uri}`.
const TEMPLATE: &str = "template";

/// Links of all projections, and the link to the TimeGates if versions are stored.
fn links(publisher: &Publisher) -> Vec<Link> {
    let projections = publisher.projections();
    let mut links: Vec<Link> =
        projections.flat_map(|projection| projection.site_links(publisher)).collect();
    if publisher.sets().iter().any(|set| set.versions.is_some()) {
        links.push(Link {
            target: format!("{}timegate/{{uri}}", publisher.urls().base()),
            rel: "timegate".to_owned(),
            params: vec![(TEMPLATE.to_owned(), String::new())],
        });
    }
    links
}

/// Attributes of a link as pairs of name and value.
fn attributes(link: &Link) -> impl Iterator<Item = (&'static str, &str)> {
    let target = if link.param(TEMPLATE).is_some() { TEMPLATE } else { "href" };
    let all = [
        ("rel", Some(link.rel.as_str())),
        (target, Some(link.target.as_str())),
        ("type", link.param("type")),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// `/.well-known/host-meta`
pub(super) fn xrd(publisher: &Publisher) -> Rendered {
    let mut bytes = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\">\n"
        .to_vec();
    for link in links(publisher) {
        bytes.extend_from_slice(b"  <Link");
        for (name, value) in attributes(&link) {
            bytes.push(b' ');
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b"=\"");
            write_escaped(&mut bytes, value);
            bytes.push(b'"');
        }
        bytes.extend_from_slice(b"/>\n");
    }
    bytes.extend_from_slice(b"</XRD>\n");
    Rendered { bytes, content_type: "application/xrd+xml" }
}

/// `/.well-known/host-meta.json`
pub(super) fn json(publisher: &Publisher) -> Rendered {
    let object = |link: &Link| -> Value {
        let members = attributes(link).map(|(name, value)| (name.to_owned(), value.into()));
        Value::Object(members.collect::<Map<_, _>>())
    };
    let links: Vec<Value> = links(publisher).iter().map(object).collect();
    let bytes = format!("{:#}\n", json!({ "links": links })).into_bytes();
    Rendered { bytes, content_type: "application/json" }
}
