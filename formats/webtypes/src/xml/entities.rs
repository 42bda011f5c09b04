//! Entities declared in the internal subset of a DOCTYPE: flat ones only [xml §4.2].

use super::tag::{self, Fault, is_space};
use crate::excerpt;
use memchr::{memchr, memmem};
use quick_xml::escape::resolve_predefined_entity;

/// Most entities that one document may declare.
const MAX_ENTITIES: usize = 1_024;
/// Most bytes in the value of an entity.
const MAX_VALUE_LENGTH: usize = 1_024;
/// Replaced entities may make a document this many times longer, in addition to [`FREE_EXPANSION`].
const MAX_EXPANSION: u64 = 16;
/// Bytes of replaced entities that are allowed in any document.
const FREE_EXPANSION: u64 = 1 << 20;

/// Declared entities: keys and texts, in order of the keys.
#[derive(Debug, Default)]
pub(super) struct Entities {
    declared: Vec<(String, String)>,
    /// Bytes by which replaced entities made the document longer.
    expanded: u64,
}

impl Entities {
    /// The text of an entity, a predefined one or a declared one.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        resolve_predefined_entity(name).or_else(|| {
            let found = self.declared.binary_search_by(|(declared, _)| declared.as_str().cmp(name));
            found.ok().map(|at| self.declared[at].1.as_str())
        })
    }

    /// Counts the bytes that replaced entities added; false if the sum exceeds the limit for
    /// a document with `document` bytes.
    pub(super) fn spend(&mut self, written: usize, replaced: usize, document: u64) -> bool {
        self.expanded += replaced.saturating_sub(written) as u64;
        self.expanded <= FREE_EXPANSION + document.saturating_mul(MAX_EXPANSION)
    }

    /// Reads the DOCTYPE at the start of the text and stores its entities. Returns its length, or
    /// `None` if the end has not arrived.
    ///
    /// An entity must be plain text: nothing in it can name a file, contain markup or refer to
    /// another entity, so its expansion is its length.
    pub(super) fn read(&mut self, text: &str) -> Result<Option<usize>, Fault> {
        let bytes = text.as_bytes();
        let mut at = "<!DOCTYPE".len();
        let refused = |at, message: &str| Err(("xml.doctype", at, message.to_owned()));
        if !skip_space(bytes, &mut at) {
            return if at == bytes.len() {
                Ok(None)
            } else {
                refused(at, "white space is missing after `<!DOCTYPE`")
            };
        }
        let Some(_) = name(text, &mut at)? else { return Ok(None) };
        skip_space(bytes, &mut at);
        match bytes.get(at) {
            None => return Ok(None),
            Some(b'>') => return Ok(Some(at + 1)),
            Some(b'[') => at += 1,
            Some(_) => {
                return refused(at, "the DOCTYPE names an external DTD, which is never read");
            }
        }
        let mut declared = Vec::new();
        loop {
            skip_space(bytes, &mut at);
            let rest = &bytes[at..];
            let begins = |with: &[u8]| rest.iter().zip(with).all(|(one, other)| one == other);
            if rest.is_empty() {
                return Ok(None);
            }
            if rest[0] == b']' {
                at += 1;
                break;
            }
            let skipped = [(&b"<!--"[..], &b"-->"[..]), (b"<?", b"?>")]
                .into_iter()
                .find(|(start, _)| begins(start));
            if let Some((start, end)) = skipped {
                let Some(found) = rest.get(start.len()..).and_then(|rest| memmem::find(rest, end))
                else {
                    return Ok(None);
                };
                at += start.len() + found + end.len();
            } else if begins(b"<!ENTITY") {
                let start = at;
                at = (at + b"<!ENTITY".len()).min(bytes.len());
                let Some((name, value)) = entity(text, &mut at)? else { return Ok(None) };
                if declared.len() == MAX_ENTITIES {
                    let message = format!("more than {MAX_ENTITIES} entities");
                    return Err(("xml.doctype", start, message));
                }
                // The first declaration counts [xml §4.2].
                if resolve_predefined_entity(name).is_none() {
                    declared.push((name.to_owned(), value));
                }
            } else {
                return refused(at, "a DOCTYPE may declare entities and nothing else");
            }
        }
        skip_space(bytes, &mut at);
        match bytes.get(at) {
            None => Ok(None),
            Some(b'>') => {
                declared.sort_by(|one, other| one.0.cmp(&other.0));
                declared.dedup_by(|later, first| later.0 == first.0);
                self.declared = declared;
                Ok(Some(at + 1))
            }
            Some(_) => refused(at, "the DOCTYPE does not end here"),
        }
    }
}

/// `NAME "VALUE">` after `<!ENTITY`.
fn entity<'a>(text: &'a str, at: &mut usize) -> Result<Option<(&'a str, String)>, Fault> {
    let bytes = text.as_bytes();
    let refused = |at, message: String| Err(("xml.doctype", at, message));
    skip_space(bytes, at);
    if bytes.get(*at) == Some(&b'%') {
        return refused(*at, "a parameter entity, which is never read".to_owned());
    }
    let start = *at;
    let Some(name) = name(text, at)? else { return Ok(None) };
    skip_space(bytes, at);
    let quote = match bytes.get(*at) {
        None => return Ok(None),
        Some(quote @ (b'"' | b'\'')) => *quote,
        Some(_) => {
            let message = format!("entity `{}` is external, which is never read", excerpt(name));
            return refused(start, message);
        }
    };
    *at += 1;
    let Some(length) = memchr(quote, &bytes[*at..]) else { return Ok(None) };
    let value = &text[*at..*at + length];
    *at += length + 1;
    skip_space(bytes, at);
    match bytes.get(*at) {
        None => return Ok(None),
        Some(b'>') => *at += 1,
        Some(_) => return refused(*at, format!("entity `{}` does not end here", excerpt(name))),
    }
    let value = value.replace("&amp;", "\u{0}");
    if value.contains(['&', '<', '%', '\n', '\r', '\t']) {
        let message = format!(
            "entity `{}` is more than plain text: it has markup, line breaks or other entities in it",
            excerpt(name)
        );
        return refused(start, message);
    }
    if value.len() > MAX_VALUE_LENGTH {
        let message = format!("entity `{}` is longer than {MAX_VALUE_LENGTH} bytes", excerpt(name));
        return refused(start, message);
    }
    Ok(Some((name, value.replace('\u{0}', "&"))))
}

/// A name that ends in hand.
fn name<'a>(text: &'a str, at: &mut usize) -> Result<Option<&'a str>, Fault> {
    let rest = &text.as_bytes()[*at..];
    let end = |byte: &u8| is_space(*byte) || matches!(byte, b'[' | b'>' | b'"' | b'\'');
    let Some(length) = rest.iter().position(end) else { return Ok(None) };
    let found = tag::name(text, &text.as_bytes()[..*at + length], *at)?;
    *at += length;
    Ok(Some(found.whole(text)))
}

fn skip_space(bytes: &[u8], at: &mut usize) -> bool {
    let start = *at;
    while bytes.get(*at).is_some_and(|byte| is_space(*byte)) {
        *at += 1;
    }
    *at > start
}
