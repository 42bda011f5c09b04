//! Links of resources and sets as `rs:ln`, equal in all documents [rs-core §14].

use crate::links::{PATCH, PublishedLinks, href_of};
use abreast_core::State;
use abreast_resourcesync::v1_1::Ln;
use abreast_webtypes::{Digests, Link, W3cDatetime};

/// Kind of document with the links; some relations are valid in some documents only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkDocument {
    /// A list of resources, without patches [rs-core §14.4].
    ResourceList,
    /// A list of changes, with all links.
    ChangeList,
    /// Manifest of a package of resources, without patches.
    ResourceDumpManifest,
    /// Manifest of a package of changes; a patch must be in the package [rs-core §14.4].
    ChangeDumpManifest,
}

/// Appends the links of a state as `rs:ln`, in their order. `resources` is the base for relative
/// targets.
pub(crate) fn state_links(resources: &str, state: &State, place: LinkDocument, out: &mut Vec<Ln>) {
    for link in &state.links {
        let packaged =
            matches!(place, LinkDocument::ResourceDumpManifest | LinkDocument::ChangeDumpManifest);
        if link.has_rel(PATCH) {
            let in_package =
                place == LinkDocument::ChangeDumpManifest && link.param("path").is_some();
            if !(in_package || place == LinkDocument::ChangeList) {
                continue;
            }
        }
        let mut ln =
            Ln { rel: link.rel.clone(), href: href_of(resources, &link.target), ..Ln::default() };
        // Attributes of the target are not defined for a TimeGate [rs-core §14.6].
        if !link.has_rel("timegate") {
            attributes(link, &mut ln);
        }
        if link.has_rel("duplicate") {
            // Digests that equal the digests of the resource are left out [rs-core §14.2].
            if ln.digests.agree(&state.digests) == Some(true) {
                ln.digests = Digests::default();
            }
            ln.length = ln.length.filter(|length| Some(*length) != state.length);
            ln.media_type =
                ln.media_type.filter(|media_type| Some(media_type) != state.media_type.as_ref());
            ln.encoding = ln.encoding.filter(|encoding| Some(encoding) != state.encoding.as_ref());
        }
        if !packaged {
            ln.path = None;
        }
        out.push(ln);
    }
}

impl PublishedLinks {
    /// Appends all links, or only links with the relation `only`.
    pub(super) fn to_ln(&self, resources: &str, only: Option<&str>, out: &mut Vec<Ln>) {
        for link in self.0.iter().filter(|link| only.is_none_or(|rel| link.has_rel(rel))) {
            let mut ln = Ln {
                rel: link.rel.clone(),
                href: href_of(resources, &link.target),
                ..Ln::default()
            };
            attributes(link, &mut ln);
            ln.path = None;
            out.push(ln);
        }
    }
}

fn attributes(link: &Link, ln: &mut Ln) {
    for (name, value) in &link.params {
        match name.as_str() {
            // The values were checked before they were stored; unreadable values are left out.
            "hash" => drop(ln.digests.parse_leniently_into(value.as_bytes())),
            "length" => ln.length = value.parse().ok(),
            "modified" => ln.modified = W3cDatetime::parse(value.as_bytes()).ok(),
            "path" => ln.path = Some(value.clone()),
            "type" => ln.media_type = Some(value.clone()),
            "encoding" => ln.encoding = Some(value.clone()),
            "pri" => ln.pri = value.parse().ok(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::{LinkRecord, read_links};

    const BASE: &str = "https://example.org/set/r/";

    fn state(records: &str) -> State {
        let records: Vec<LinkRecord> = serde_json::from_str(records).unwrap();
        let mut digests = Digests::default();
        digests.parse_into(b"md5:1584abdf8ebdc9802ac0c6a7402c03b6").unwrap();
        State {
            length: Some(8_876),
            media_type: Some("text/html".into()),
            digests,
            links: read_links("d/res1", &records).unwrap(),
            ..State::default()
        }
    }

    fn lns(state: &State, place: LinkDocument) -> Vec<Ln> {
        let mut out = Vec::new();
        state_links(BASE, state, place, &mut out);
        out
    }

    #[test]
    fn mirrors_leave_out_what_they_share_with_the_resource() {
        let state = state(
            r#"[{"rel":"duplicate","pri":1,"href":"http://mirror1.example.com/res1","modified":"2013-01-03T18:00:00Z",
                 "hash":"md5:1584abdf8ebdc9802ac0c6a7402c03b6","length":8876,"type":"text/html"},
                {"rel":"duplicate","pri":3,"href":"gsiftp://gridftp.example.com/res1","length":1}]"#,
        );
        let links = lns(&state, LinkDocument::ChangeList);
        assert_eq!(links[0].pri, Some(1));
        assert_eq!(links[0].modified.unwrap().instant.to_string(), "2013-01-03T18:00:00Z");
        assert!(
            links[0].digests.is_empty()
                && links[0].length.is_none()
                && links[0].media_type.is_none()
        );
        assert_eq!(
            (links[1].href.as_str(), links[1].length),
            ("gsiftp://gridftp.example.com/res1", Some(1))
        );
    }

    #[test]
    fn a_patch_is_stated_with_changes_only() {
        let state = state(
            r#"[{"rel":"http://www.openarchives.org/rs/terms/patch","href":"p","type":"application/json-patch+json"},
                {"rel":"http://www.openarchives.org/rs/terms/patch","href":"q","path":"/q","type":"application/json-patch+json"},
                {"rel":"describedby","href":"res1.xml","path":"/m/res1.xml"}]"#,
        );
        let hrefs = |place| -> Vec<String> {
            lns(&state, place)
                .into_iter()
                .map(|ln| ln.href.rsplit('/').next().unwrap().to_owned())
                .collect()
        };
        assert_eq!(hrefs(LinkDocument::ResourceList), ["res1.xml"]);
        assert_eq!(hrefs(LinkDocument::ResourceDumpManifest), ["res1.xml"]);
        assert_eq!(hrefs(LinkDocument::ChangeList), ["p", "q", "res1.xml"]);
        assert_eq!(hrefs(LinkDocument::ChangeDumpManifest), ["q", "res1.xml"]);
        assert!(lns(&state, LinkDocument::ChangeList).iter().all(|ln| ln.path.is_none()));
        assert_eq!(
            lns(&state, LinkDocument::ChangeDumpManifest)[1].path.as_deref(),
            Some("/m/res1.xml")
        );
        assert_eq!(
            lns(&state, LinkDocument::ResourceList)[0].href,
            "https://example.org/set/r/d/res1.xml"
        );
    }

    #[test]
    fn a_timegate_has_no_attributes() {
        let state = state(
            r#"[{"rel":"timegate","href":"http://example.com/timegate/x","type":"a/b","length":1}]"#,
        );
        let ln = lns(&state, LinkDocument::ResourceList).remove(0);
        assert_eq!((ln.media_type, ln.length), (None, None));
    }
}
