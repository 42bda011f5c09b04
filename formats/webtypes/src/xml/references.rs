//! References and line ends in text [xml §2.11, §3.3.3, §4.1].

use super::entities::Entities;
use super::input::first_forbidden;
use crate::excerpt;
use memchr::{memchr, memchr2};
use quick_xml::escape::{EscapeError, unescape_with};
use std::borrow::Cow;

/// Line ends become `\n` [xml §2.11].
pub(super) fn line_ends(raw: &str) -> Cow<'_, str> {
    if memchr(b'\r', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    Cow::Owned(raw.replace("\r\n", "\n").replace('\r', "\n"))
}

/// White space becomes blanks, then references are replaced [xml §3.3.3].
pub(super) fn attribute_value(raw: &str, entities: &Entities) -> Result<String, String> {
    let mut text = line_ends(raw).into_owned();
    if memchr2(b'\n', b'\t', text.as_bytes()).is_some() {
        text = text.replace(['\n', '\t'], " ");
    }
    references(&text, entities)
}

/// Replaces the five predefined entities, declared ones and references to characters that XML allows.
pub(super) fn references(text: &str, entities: &Entities) -> Result<String, String> {
    let replaced = unescape_with(text, |name| entities.get(name)).map_err(|error| match error {
        EscapeError::UnrecognizedEntity(_, name) => {
            format!("entity `&{};` is not defined", excerpt(&name))
        }
        EscapeError::UnterminatedEntity(_) => {
            "`&` begins no reference; alone it is written `&amp;`".to_owned()
        }
        _ => "a character reference names no character".to_owned(),
    })?;
    // A literal character was checked on input, so a forbidden one came from a reference.
    match first_forbidden(&replaced) {
        Some(_) => {
            Err("a character reference names a character that XML does not allow".to_owned())
        }
        None => Ok(replaced.into_owned()),
    }
}
