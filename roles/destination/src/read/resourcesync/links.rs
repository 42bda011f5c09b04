//! Links to ResourceSync documents in HTTP headers, web pages and robots.txt [rs-core §6.3].

pub(crate) mod fuzz_property;

use abreast_webtypes::{HtmlTags, parse_link_header};

const RELATION: &str = "resourcesync";

/// Targets with `rel=resourcesync` in a `Link` header. Links of other resources and links that
/// cannot be read are skipped.
pub(crate) fn in_header(value: &str) -> Vec<String> {
    let links = parse_link_header(value).unwrap_or_default().into_iter();
    links
        .filter(|link| link.has_rel(RELATION) && link.anchor().is_none())
        .map(|link| link.target)
        .collect()
}

/// Whether a text starts like a web page.
pub(crate) fn is_html(text: &[u8]) -> bool {
    let begin = &text[..text.len().min(1_024)];
    let lower = begin.to_ascii_lowercase();
    let lower = String::from_utf8_lossy(&lower);
    // A text or JSON that mentions the tag is not a page.
    lower.trim_start_matches('\u{feff}').trim_start().starts_with('<')
        && (lower.contains("<html") || lower.contains("<!doctype html"))
}

/// Targets of `<link rel="resourcesync" href="…">` in the head of a page.
pub(crate) fn in_html(page: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(page);
    let head =
        HtmlTags::new(&text).take_while(|tag| !matches!(tag.name.as_str(), "body" | "/head"));
    head.filter(|tag| tag.name == "link")
        .filter(|tag| {
            tag.value("rel").is_some_and(|rel| rel.split_ascii_whitespace().any(is_relation))
        })
        .filter_map(|tag| Some(tag.value("href")?.trim().to_owned()))
        .collect()
}

fn is_relation(token: &str) -> bool {
    token.eq_ignore_ascii_case(RELATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn link_headers_are_read_among_others() {
        let value = r#"</a>; rel="next, x"; title="<b>", </caps.xml>; REL="up resourcesync", <http://h/c>;rel=resourcesync"#;
        assert_eq!(in_header(value), ["/caps.xml", "http://h/c"]);
        assert!(in_header("<a; rel=resourcesync").is_empty());
    }

    #[test]
    fn links_in_the_head_of_a_page_are_found() {
        let page = br#"<!DOCTYPE html><html><head><!-- <link rel=resourcesync href=/no> -->
            <script>"<link rel='resourcesync' href='/no'>"</script>
            <LINK href='/caps.xml?a=1&amp;b=2' REL="resourcesync"><link rel=stylesheet href=x>
            <link rel = resourcesync href=/two/></head><body><link rel=resourcesync href=/no>"#;
        assert_eq!(in_html(page), ["/caps.xml?a=1&b=2", "/two/"]);
        assert!(is_html(page));
        assert!(!is_html(b"<?xml version='1.0'?><urlset>"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, page: Vec<u8>, tag in "(<link |rel|=|\"|'|>|/|resourcesync| |<!--|é){0,30}") {
            in_header(&text);
            in_html(&page);
            in_html(tag.as_bytes());
        }
    }
}
