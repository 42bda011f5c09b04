//! The tags at the start of a web page, as far as discovery needs them: names and attributes,
//! without comments and scripts.

use std::borrow::Cow;

/// Tags read; a page with more is not read further.
const MAX_TAGS: usize = 10_000;
/// Most attributes that are read from one tag.
const MAX_ATTRIBUTES: usize = 64;
/// Elements whose content is text, or is not part of the page.
const OPAQUE: [&str; 5] = ["script", "style", "title", "noscript", "template"];

/// The tags of a page in their order, those within comments, scripts and the like left out.
///
/// # Examples
/// ```
/// use abreast_webtypes::HtmlTags;
///
/// let page = r#"<!doctype html><title>Maps</title><!-- <link rel="old"> -->
///   <link rel="resourcesync" href="/capabilitylist.xml?set=maps&amp;v=1">"#;
/// let link = HtmlTags::new(page).find(|tag| tag.name == "link").expect("the page has a link");
/// assert_eq!(link.value("rel").as_deref(), Some("resourcesync"));
/// assert_eq!(link.value("href").as_deref(), Some("/capabilitylist.xml?set=maps&v=1"));
/// ```
#[derive(Clone, Debug)]
pub struct HtmlTags<'a> {
    rest: &'a str,
    left: usize,
}

/// A tag of a web page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtmlTag<'a> {
    /// Name in lower case; the name of an end tag starts with `/`.
    pub name: String,
    /// Whether text other than white space precedes the tag. Such text starts the body of a page.
    pub follows_text: bool,
    attributes: Vec<(&'a str, &'a str)>,
}

impl HtmlTag<'_> {
    /// The value of an attribute, with references to characters that occur in URLs replaced.
    pub fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let found = self.attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| decoded(value))
    }
}

impl<'a> HtmlTags<'a> {
    /// The tags of this text.
    pub fn new(page: &'a str) -> Self {
        Self { rest: page.trim_start_matches('\u{feff}'), left: MAX_TAGS }
    }
}

impl<'a> Iterator for HtmlTags<'a> {
    type Item = HtmlTag<'a>;

    fn next(&mut self) -> Option<HtmlTag<'a>> {
        let mut follows_text = false;
        loop {
            self.left = self.left.checked_sub(1)?;
            let at = self.rest.find('<')?;
            follows_text |= !self.rest[..at].trim_ascii().is_empty();
            self.rest = &self.rest[at + 1..];
            if let Some(comment) = self.rest.strip_prefix("!--") {
                self.rest = after(comment, "-->");
            } else if self.rest.starts_with(['!', '?']) {
                self.rest = after(self.rest, ">");
            } else {
                break;
            }
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '/')
            .unwrap_or(self.rest.len());
        let name = self.rest[..end].to_ascii_lowercase();
        let (attributes, behind) = attributes(&self.rest[end..]);
        self.rest =
            if OPAQUE.contains(&name.as_str()) { behind_end(behind, &name) } else { behind };
        Some(HtmlTag { name, follows_text, attributes })
    }
}

/// The text after the next occurrence, or an empty text without an occurrence.
fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// The text after `</name…>`, in any letter case.
fn behind_end<'a>(text: &'a str, name: &str) -> &'a str {
    let is_end = |at: &usize| {
        let found = text.as_bytes().get(at + 2..at + 2 + name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    };
    text.match_indices("</").map(|(at, _)| at).find(is_end).map_or("", |at| after(&text[at..], ">"))
}

/// The attributes of a tag as written, and the text after the tag.
fn attributes(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return (found, rest);
        }
        if let Some(behind) = rest.strip_prefix('>') {
            return (found, behind);
        }
        // An `=` at the start of a name is part of the name.
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'));
        let (name, behind) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = behind.trim_ascii_start();
        let mut value = "";
        if let Some(behind) = rest.strip_prefix('=') {
            let behind = behind.trim_ascii_start();
            if let Some(quote) = behind.chars().next().filter(|c| matches!(c, '"' | '\'')) {
                let inner = &behind[1..];
                let end = inner.find(quote).unwrap_or(inner.len());
                value = &inner[..end];
                rest = inner.get(end + 1..).unwrap_or_default();
            } else {
                let end = behind
                    .find(|c: char| c.is_ascii_whitespace() || c == '>')
                    .unwrap_or(behind.len());
                (value, rest) = behind.split_at(end);
            }
        }
        if found.len() < MAX_ATTRIBUTES {
            found.push((name, value));
        }
    }
}

/// A value with references to characters that occur in URLs replaced.
fn decoded(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return value.into();
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(10).position(|byte| byte == b';');
        match end.and_then(|end| Some((character(&rest[..end])?, end))) {
            Some((character, end)) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out.into()
}

fn character(reference: &str) -> Option<char> {
    match reference {
        "amp" | "AMP" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        "sol" => return Some('/'),
        "colon" => return Some(':'),
        "quest" => return Some('?'),
        "equals" => return Some('='),
        "percnt" => return Some('%'),
        _ => {}
    }
    let number = reference.strip_prefix('#')?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_in_order_without_what_is_no_part_of_the_page() {
        let page = "\u{feff}<!DOCTYPE html><HTML lang=en><!-- <no> --><title><no></title>\n<Link REL='a' href=/x?a=1&amp;b=2>text</head>";
        let tags: Vec<_> = HtmlTags::new(page).collect();
        let names: Vec<_> = tags.iter().map(|tag| (tag.name.as_str(), tag.follows_text)).collect();
        assert_eq!(names, [("html", false), ("title", false), ("link", false), ("/head", true)]);
        assert_eq!(
            (tags[2].value("rel").as_deref(), tags[2].value("href").as_deref()),
            (Some("a"), Some("/x?a=1&b=2"))
        );
        assert_eq!((tags[0].value("lang").as_deref(), tags[0].value("rel")), (Some("en"), None));
    }

    #[test]
    fn a_page_has_limits() {
        assert_eq!(HtmlTags::new(&"<a>".repeat(MAX_TAGS + 5)).count(), MAX_TAGS);
        let tag = format!("<a{} last=1>", " x=1".repeat(MAX_ATTRIBUTES));
        assert_eq!(HtmlTags::new(&tag).next().unwrap().value("last"), None);
        assert_eq!(
            HtmlTags::new("<script><a>").map(|tag| tag.name).collect::<Vec<_>>(),
            ["script"]
        );
        for cut in ["<", "<a", "<a b", "<a b=", "<a b='c", "<!-- <a>", "<!a"] {
            assert!(HtmlTags::new(cut).count() <= 1, "{cut}");
        }
    }
}
