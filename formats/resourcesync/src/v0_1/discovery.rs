//! Links to documents of this version in web pages and host-meta [rs-0.1 §7.2, §7.3].

use super::{CHANGE_SET, DUMP};
use abreast_webtypes::HtmlTags;
use abreast_webtypes::xml::{Reader, Token};

const XRD: &[&str] = &["http://docs.oasis-open.org/ns/xri/xrd-1.0"];

/// The kind of a link's target. Kinds are ordered by the preference as a starting point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// A Sitemap, or an index of several.
    Sitemap,
    /// The change set with the newest changes.
    CurrentChangeSet,
    /// A change set without the relation `current`.
    ChangeSet,
    /// A dump, or one part.
    Dump,
}

impl LinkKind {
    /// The kind of document that a link leads to, by its relation types; `None` for other links.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v0_1::LinkKind;
    ///
    /// let rels = "current http://www.openarchives.org/rs/changeset";
    /// assert_eq!(LinkKind::of(rels), Some(LinkKind::CurrentChangeSet));
    /// assert_eq!(LinkKind::of("stylesheet"), None);
    /// ```
    pub fn of(rels: &str) -> Option<Self> {
        let has =
            |rel: &str| rels.split_ascii_whitespace().any(|token| token.eq_ignore_ascii_case(rel));
        match () {
            () if has("sitemap") => Some(Self::Sitemap),
            () if has(CHANGE_SET) && has("current") => Some(Self::CurrentChangeSet),
            () if has(CHANGE_SET) && !has("prev") && !has("previous") => Some(Self::ChangeSet),
            () if has(DUMP) => Some(Self::Dump),
            () => None,
        }
    }
}

/// The links in the head of a web page, in its order, as they are written.
///
/// # Examples
/// ```
/// use abreast_resourcesync::v0_1::{LinkKind, links_in_html};
///
/// let page = br#"<html><head><title>Digital collections</title>
///   <link rel="sitemap" href="/rs/sitemap.xml"></head><body>Welcome</body></html>"#;
/// assert_eq!(links_in_html(page), [(LinkKind::Sitemap, "/rs/sitemap.xml".to_owned())]);
/// ```
pub fn links_in_html(page: &[u8]) -> Vec<(LinkKind, String)> {
    let text = String::from_utf8_lossy(page);
    let head =
        HtmlTags::new(&text).take_while(|tag| !matches!(tag.name.as_str(), "body" | "/head"));
    head.filter(|tag| tag.name == "link")
        .filter_map(|tag| {
            Some((LinkKind::of(&tag.value("rel")?)?, tag.value("href")?.into_owned()))
        })
        .collect()
}

/// The links of host-meta, in JSON or XML (RFC 6415), in its order, as they are written.
///
/// # Examples
/// ```
/// use abreast_resourcesync::v0_1::{LinkKind, links_in_host_meta};
///
/// let host_meta = br#"{"links": [
///   {"rel": "http://www.openarchives.org/rs/dump", "href": "https://repo.example/dump.zip"}
/// ]}"#;
/// let dump = "https://repo.example/dump.zip".to_owned();
/// assert_eq!(links_in_host_meta(host_meta), [(LinkKind::Dump, dump)]);
/// ```
pub fn links_in_host_meta(body: &[u8]) -> Vec<(LinkKind, String)> {
    if body.trim_ascii_start().starts_with(b"{") { in_json(body) } else { in_xrd(body) }
}

fn in_json(body: &[u8]) -> Vec<(LinkKind, String)> {
    let host_meta: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let links = host_meta["links"].as_array().into_iter().flatten();
    let link = |link: &serde_json::Value| {
        Some((LinkKind::of(link["rel"].as_str()?)?, link["href"].as_str()?.to_owned()))
    };
    links.filter_map(link).collect()
}

fn in_xrd(body: &[u8]) -> Vec<(LinkKind, String)> {
    let (mut reader, mut found) = (Reader::new(XRD), Vec::new());
    reader.guess_encoding();
    reader.push(body);
    reader.finish();
    loop {
        match reader.next() {
            Ok(Token::Start(element)) if element.local() == "Link" => {
                let kind = element.attribute("rel").and_then(|rel| LinkKind::of(&rel));
                if let (Some(kind), Some(href)) = (kind, element.attribute("href")) {
                    found.push((kind, href.into_owned()));
                }
            }
            Ok(Token::Done | Token::NeedInput) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CURRENT: &str = "current http://www.openarchives.org/rs/changeset";

    #[test]
    fn links_are_found_in_pages_and_in_both_forms_of_host_meta() {
        let change_set = (LinkKind::CurrentChangeSet, "/c.xml".to_owned());
        let html = format!(
            "<!DOCTYPE html><head><link rel=\"{CURRENT}\" href=/c.xml><link rel='prev {CHANGE_SET}' href=/no>\
             <link rel=sitemap href=/s.xml></head><body><link rel=\"{CURRENT}\" href=/no>"
        );
        let sitemap = (LinkKind::Sitemap, "/s.xml".to_owned());
        assert_eq!(links_in_html(html.as_bytes()), [change_set.clone(), sitemap]);
        let xrd = format!(
            "<XRD xmlns='{}'><Subject>h</Subject><Link rel='{DUMP}' href='/d.zip'/><Link rel='{CURRENT}' href='/c.xml'/></XRD>",
            XRD[0]
        );
        let dump = (LinkKind::Dump, "/d.zip".to_owned());
        assert_eq!(links_in_host_meta(xrd.as_bytes()), [dump, change_set.clone()]);
        let json = format!(
            "{{\"links\":[{{\"rel\":\"{CURRENT}\",\"href\":\"/c.xml\"}},{{\"rel\":\"lrdd\",\"template\":\"x\"}},5]}}"
        );
        assert_eq!(links_in_host_meta(json.as_bytes()), [change_set]);
    }

    proptest! {
        #[test]
        fn no_page_panics(body: Vec<u8>, json in "\\{[\\{\\}\\[\\]\",:a-z]{0,40}") {
            links_in_html(&body);
            links_in_host_meta(&body);
            links_in_host_meta(json.as_bytes());
        }
    }
}
