//! Search for links to a Source in the head of a web page [rs-core §6.3].

/// Targets of `<link rel="resourcesync" href="…">` in a page, except in comments and scripts.
pub(crate) fn in_html(page: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(page);
    let mut found = Vec::new();
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '/').unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        match name.as_str() {
            "body" | "/head" => break,
            "script" | "style" => {
                let close = rest.to_ascii_lowercase().find(&format!("</{name}"));
                rest = close.map_or("", |close| &rest[close..]);
            }
            "link" => {
                let tag = &rest[end..rest.find('>').unwrap_or(rest.len())];
                let is_ours = value(tag, "rel").is_some_and(|rel| {
                    rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("resourcesync"))
                });
                if let (true, Some(href)) = (is_ours, value(tag, "href")) {
                    found.push(href.trim().replace("&amp;", "&"));
                }
            }
            _ => {}
        }
    }
    found
}

/// Value of an attribute in an HTML tag.
fn value<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = tag;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=').unwrap_or(rest.len());
        let found = rest[..end].eq_ignore_ascii_case(name);
        rest = rest[end..].trim_start();
        let Some(after) = rest.strip_prefix('=') else { continue };
        let after = after.trim_start();
        let value = if let Some(quote @ ('"' | '\'')) = after.chars().next() {
            let inside = &after[1..];
            let end = inside.find(quote).unwrap_or(inside.len());
            rest = inside.get(end + 1..).unwrap_or_default();
            &inside[..end]
        } else {
            let end = after.find(|c: char| c.is_ascii_whitespace()).unwrap_or(after.len());
            rest = &after[end..];
            &after[..end]
        };
        if found {
            return Some(value);
        }
    }
}

/// Whether the first bytes are from a web page.
pub(crate) fn is_page(begin: &[u8]) -> bool {
    let lower = begin[..begin.len().min(1_024)].to_ascii_lowercase();
    let lower = String::from_utf8_lossy(&lower);
    let lower = lower.trim_start_matches('\u{feff}').trim_start();
    lower.contains("<!doctype html") || lower.contains("<html")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links_in_the_head_of_a_page_are_found() {
        let page = br#"<!DOCTYPE html><html><head><!-- <link rel=resourcesync href=/no> -->
            <script>"<link rel='resourcesync' href='/no'>"</script>
            <LINK href='/caps.xml?a=1&amp;b=2' REL="resourcesync"><link rel=stylesheet href=x>
            <link rel = resourcesync href=/two></head><body><link rel=resourcesync href=/no>"#;
        assert_eq!(in_html(page), ["/caps.xml?a=1&b=2", "/two"]);
        assert!(is_page(page));
        assert!(!is_page(b"<?xml version='1.0'?><urlset>"));
    }

    proptest! {
        #[test]
        fn no_page_panics(page: Vec<u8>, tag in "(<link |rel|=|\"|'|>|/|resourcesync| |<!--|é){0,30}") {
            in_html(&page);
            in_html(tag.as_bytes());
            is_page(&page);
        }
    }
}
