//! Links to ResourceSync documents in HTTP headers, web pages and robots.txt [rs-core §6.3].

pub(crate) mod fuzz_property;

/// Targets with `rel=resourcesync` in a `Link` header.
///
/// Lenient: what cannot be read is passed over, for the header speaks of other things too.
pub(crate) fn in_header(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some(open) = rest.find('<') {
        let Some(close) = rest[open..].find('>') else { break };
        let target = &rest[open + 1..open + close];
        rest = &rest[open + close + 1..];
        let end = end_of_parameters(rest);
        if parameters(&rest[..end]).any(|(name, value)| name.eq_ignore_ascii_case("rel") && has_rel(&value)) {
            found.push(target.trim().to_owned());
        }
        rest = &rest[end..];
    }
    found
}

/// Up to the comma that begins the next link.
fn end_of_parameters(text: &str) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

fn parameters(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.split(';').filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim(), value.trim().trim_matches('"').to_owned()))
    })
}

fn has_rel(value: &str) -> bool {
    value.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("resourcesync"))
}

/// Whether a text begins as a web page does.
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
    let mut found = Vec::new();
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let name_end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '/').unwrap_or(rest.len());
        let name = rest[..name_end].to_ascii_lowercase();
        rest = &rest[name_end..];
        match name.as_str() {
            "body" | "/head" => break,
            "script" | "style" => {
                rest = find_end(rest, &name).map_or("", |end| &rest[end..]);
            }
            "link" => {
                let (attributes, after) = attributes(rest);
                rest = after;
                let value =
                    |name: &str| attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
                if let (Some(rel), Some(href)) = (value("rel"), value("href"))
                    && has_rel(rel)
                {
                    found.push(href.trim().replace("&amp;", "&"));
                }
            }
            _ => {}
        }
    }
    found
}

/// Where `</name` is, in any letter case.
fn find_end(text: &str, name: &str) -> Option<usize> {
    let is_end = |at: &usize| {
        let after = text.as_bytes().get(at + 2..at + 2 + name.len());
        after.is_some_and(|after| after.eq_ignore_ascii_case(name.as_bytes()))
    };
    text.match_indices("</").map(|(at, _)| at).find(is_end)
}

/// The attributes of a tag, and what follows the tag.
fn attributes(text: &str) -> (Vec<(String, String)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return (found, rest);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (found, after);
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/')).unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            let after = after.trim_start();
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
            if let Some(quote) = quote {
                let inner = &after[1..];
                let end = inner.find(quote).unwrap_or(inner.len());
                value = &inner[..end];
                rest = inner.get(end + 1..).unwrap_or("");
            } else {
                let end = after.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(after.len());
                value = &after[..end];
                rest = &after[end..];
            }
        } else if end == 0 {
            // A stray character, such as a quote: pass over it.
            let mut chars = rest.chars();
            chars.next();
            rest = chars.as_str();
            continue;
        }
        found.push((name, value.to_owned()));
    }
}

/// Targets of `Sitemap:` lines in a robots.txt.
pub(crate) fn in_robots(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case("sitemap").then(|| value.trim().to_owned())
        })
        .filter(|value| !value.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn link_headers_are_read_among_others() {
        let value =
            r#"</a>; rel="next, x"; title="<b>", </caps.xml>; REL="up resourcesync", <http://h/c>;rel=resourcesync"#;
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

    #[test]
    fn robots_lines_are_found() {
        assert_eq!(
            in_robots(b"User-agent: *\nSITEMAP : http://h/s.xml\nSitemap:\n# Sitemap: no\n"),
            ["http://h/s.xml"]
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, page: Vec<u8>, tag in "(<link |rel|=|\"|'|>|/|resourcesync| |<!--|é){0,30}") {
            in_header(&text);
            in_html(&page);
            in_html(tag.as_bytes());
            in_robots(&page);
        }
    }
}
