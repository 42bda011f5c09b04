//! Discovery in web pages: `<link>` inside the `<head>` [websub §4, §8.1].

use super::{DiscoverError, HubLinks};
use abreast_webtypes::resolve;
use std::borrow::Cow;

/// Tags checked; a head with more is not read on.
const MAX_TAGS: usize = 10_000;
/// Attributes of one tag that are checked.
const MAX_ATTRIBUTES: usize = 64;

/// The links in the head of a page, read as browsers do: what cannot stand in a head ends it.
pub(super) fn links(base: &str, body: &[u8]) -> Result<HubLinks, DiscoverError> {
    let text = String::from_utf8_lossy(body);
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut found = HubLinks::default();
    let mut base: Cow<'_, str> = base.into();
    let mut has_base = false;
    for _ in 0..MAX_TAGS {
        let Some(at) = rest.find('<') else { break };
        // Text that is not white space begins the body.
        if !rest[..at].trim_ascii().is_empty() {
            break;
        }
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = after(comment, "-->");
            continue;
        }
        if rest.starts_with(['!', '?']) {
            rest = after(rest, ">");
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '/').unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        let (attributes, behind) = attributes(&rest[end..]);
        rest = behind;
        let value = |name: &str| {
            let found = attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| decoded(value))
        };
        match name.as_str() {
            "link" => {
                if let (Some(rel), Some(href)) = (value("rel"), value("href")) {
                    found.add(&base, &rel, href.trim_ascii())?;
                }
            }
            "base" if !has_base => {
                if let Some(href) = value("href") {
                    (base, has_base) = (resolve(&base, &href)?.into(), true);
                }
            }
            "html" | "head" | "base" | "meta" | "/base" | "/meta" | "/link" => {}
            "script" | "style" | "title" | "noscript" | "template" => rest = behind_end(rest, &name),
            // `</head>`, `<body>` and whatever else begins the body.
            _ => break,
        }
    }
    Ok(found)
}

/// The text after the next occurrence; empty when there is none.
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

/// The attributes of a tag as written, and what follows the tag.
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
        // An `=` that begins a name is part of it.
        let end = rest.char_indices().skip(1).find(|(_, c)| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'));
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
                let end = behind.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(behind.len());
                (value, rest) = behind.split_at(end);
            }
        }
        if found.len() < MAX_ATTRIBUTES {
            found.push((name, value));
        }
    }
}

/// A value with its references replaced: those of characters that stand in URLs.
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
