//! The header of a patch: words and terms.

use std::fmt::Write as _;

use oxrdf::{NamedNode, Term};

/// The word of the patch's own identifier, an IRI.
pub const ID: &str = "id";
/// The word of the identifier of the patch before this one.
pub const PREV: &str = "prev";
/// The word of the identifier of the patch before this one that is about the same entity. An
/// extension.
pub const ENTITY_PREV: &str = "entityPrev";
/// Word of the digest of the data to which the patch applies. An extension.
pub const BEFORE: &str = "before";
/// The word of the digest of what results. An extension.
pub const AFTER: &str = "after";
/// Word of the IRI that starts each IRI in place of a blank node. An extension.
pub const SKOLEM: &str = "skolem";

/// The words that the lenient reader accepts in any letter case.
pub(crate) const WORDS: [&str; 2] = [ID, PREV];

/// The header of a patch, in the order of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    rows: Vec<(String, Term)>,
}

impl Header {
    /// A header with the identifiers of this patch and of its predecessor.
    pub fn new(id: NamedNode, prev: Option<NamedNode>) -> Self {
        let mut header = Self::default();
        header.push(ID, id);
        if let Some(prev) = prev {
            header.push(PREV, prev);
        }
        header
    }

    /// Adds a row at the end of the header.
    pub fn push(&mut self, word: impl Into<String>, value: impl Into<Term>) {
        self.rows.push((word.into(), value.into()));
    }

    /// Rows of the header, in their order.
    pub fn rows(&self) -> &[(String, Term)] {
        &self.rows
    }

    /// The first term with this word.
    pub fn get(&self, word: &str) -> Option<&Term> {
        self.rows.iter().find(|(known, _)| known == word).map(|(_, value)| value)
    }

    /// The first term with this word, if it is an IRI.
    pub fn iri(&self, word: &str) -> Option<&str> {
        match self.get(word)? {
            Term::NamedNode(node) => Some(node.as_str()),
            _ => None,
        }
    }

    /// The first term with this word, if it is a string.
    pub fn text(&self, word: &str) -> Option<&str> {
        match self.get(word)? {
            Term::Literal(literal) => Some(literal.value()),
            _ => None,
        }
    }

    /// Identifier of the patch, if it is an IRI.
    pub fn id(&self) -> Option<&str> {
        self.iri(ID)
    }

    /// The identifier of the patch before this one.
    pub fn prev(&self) -> Option<&str> {
        self.iri(PREV)
    }

    /// The header of the reversed patch: `id` and `prev` are exchanged, and so are `before` and
    /// `after`; the patch before it about the same entity is not known.
    pub(crate) fn reversed(&self) -> Self {
        let rows = self.rows.iter().filter(|(word, _)| word != ENTITY_PREV);
        let reversed = |word: &String| match word.as_str() {
            ID => PREV.to_owned(),
            PREV => ID.to_owned(),
            BEFORE => AFTER.to_owned(),
            AFTER => BEFORE.to_owned(),
            other => other.to_owned(),
        };
        let mut rows: Vec<_> = rows.map(|(word, value)| (reversed(word), value.clone())).collect();
        // `id` before `prev`, and the others in their order.
        rows.sort_by_key(|(word, _)| (word != ID, word != PREV));
        Self { rows }
    }
}

/// A UUID of version 8 made of 128 bits, such as a hash, as the IRI that RDF Delta expects:
/// `uuid:…`.
pub fn uuid_iri(mut bits: [u8; 16]) -> String {
    bits[6] = bits[6] & 0x0F | 0x80;
    bits[8] = bits[8] & 0x3F | 0x80;
    let mut iri = String::from("uuid:");
    for (at, byte) in bits.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            iri.push('-');
        }
        let _ = write!(iri, "{byte:02x}");
    }
    iri
}

/// The bits of a UUID: alone, or behind `uuid:` or `urn:uuid:`.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.strip_prefix("urn:").unwrap_or(text);
    let text = text.strip_prefix("uuid:").unwrap_or(text).as_bytes();
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let mut bits = [0; 16];
    let mut digits = 0;
    for (at, byte) in text.iter().enumerate() {
        if is_hyphen(at) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = char::from(*byte).to_digit(16)? as u8;
        *bits.get_mut(digits / 2)? |= if digits % 2 == 0 { digit << 4 } else { digit };
        digits += 1;
    }
    (digits == 32).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_is_read_as_it_is_written() {
        let bits = *b"0123456789abcdef";
        let iri = uuid_iri(bits);
        let parsed = parse_uuid(&iri).unwrap();
        assert_eq!(uuid_iri(parsed), iri);
        assert_eq!(parse_uuid(&iri[5..].to_uppercase()), Some(parsed));
        assert_eq!(parse_uuid(&format!("urn:{iri}")), Some(parsed));
        for wrong in
            ["", "uuid:", &iri[..iri.len() - 1], &format!("{iri}0"), &iri.replace('-', "+")]
        {
            assert_eq!(parse_uuid(wrong), None, "{wrong}");
        }
    }
}
