//! Discovery in web pages: `<link>` inside the `<head>` [websub §4, §8.1].

use super::links::{DiscoverError, HubLinks};
use abreast_webtypes::{HtmlTags, resolve};
use std::borrow::Cow;

/// The links in the head of a page. As in browsers, the head ends at the first element that HTML
/// does not permit in a head.
pub(super) fn links(base: &str, body: &[u8]) -> Result<HubLinks, DiscoverError> {
    let text = String::from_utf8_lossy(body);
    let mut found = HubLinks::default();
    let mut base: Cow<'_, str> = base.into();
    let mut has_base = false;
    for tag in HtmlTags::new(&text).take_while(|tag| !tag.follows_text) {
        match tag.name.as_str() {
            "link" => {
                if let (Some(rel), Some(href)) = (tag.value("rel"), tag.value("href")) {
                    found.add(&base, &rel, href.trim_ascii())?;
                }
            }
            "base" if !has_base => {
                if let Some(href) = tag.value("href") {
                    (base, has_base) = (resolve(&base, &href)?.into(), true);
                }
            }
            "html" | "head" | "base" | "meta" | "/base" | "/meta" | "/link" | "script"
            | "style" | "title" | "noscript" | "template" => {}
            // `</head>`, `<body>` and whatever else begins the body.
            _ => break,
        }
    }
    Ok(found)
}
