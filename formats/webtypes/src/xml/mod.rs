//! A hardened XML reader: elements, attributes and texts of a stream of bytes [xml, xml-names].
//!
//! [`Reader`] does no IO: bytes are pushed in chunks of any size, and complete tokens are pulled.
//! The tokens do not depend on where the input was cut. Memory is bounded by one chunk and one
//! token; every limit is a constant here.
//!
//! | code | refused |
//! |---|---|
//! | `xml.doctype` | a DOCTYPE, before its content is read; with [`Reader::allow_entities`], everything in a DOCTYPE except plain entities |
//! | `xml.depth` | elements nested deeper than [`MAX_DEPTH`] |
//! | `xml.attributes` | more than [`MAX_ATTRIBUTES`] on one element or [`MAX_NAMESPACES`] in scope, or a duplicate |
//! | `xml.encoding` | bytes that are not the encoding they should be, or an encoding other than UTF-8, UTF-16, ISO-8859-1 and windows-1252 |
//! | `xml.eof` | a document that ends before its root element does |
//! | `xml.size` | a token, a name or a document that is too long |
//! | `xml.syntax` | anything else that is not well-formed, and entities that are not predefined |

mod encoding;
mod entities;
mod escape;
mod input;
mod namespaces;
mod reader;
mod references;
mod scope;
mod tag;

pub use encoding::utf8_begin;
pub use escape::write_escaped;
pub use input::first_forbidden;
pub use namespaces::Ns;
pub use reader::{Attribute, Element, Reader, Token};
pub use tag::{is_name_character, is_name_start, is_nc_name};

/// Most elements inside each other.
pub const MAX_DEPTH: usize = 64;
/// Most attributes of an element, including namespace declarations.
pub const MAX_ATTRIBUTES: usize = 256;
/// Namespace declarations in scope at one place.
pub const MAX_NAMESPACES: usize = 128;
/// Most bytes in one name, including its prefix.
pub const MAX_NAME_LENGTH: usize = 1_024;
/// Most bytes in one token as read: a tag with all its attributes, a text, a comment.
pub const MAX_TOKEN_LENGTH: usize = 1 << 20;
/// Most bytes in one document, unless the caller sets another limit.
pub const DEFAULT_MAX_DOCUMENT_LENGTH: u64 = 512 << 20;

/// The limits of a [`Reader`] that callers may set; all other limits are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the document [[`DEFAULT_MAX_DOCUMENT_LENGTH`]].
    pub document_length: u64,
    /// Most bytes in one token [[`MAX_TOKEN_LENGTH`]].
    pub token_length: usize,
    /// Elements inside each other [[`MAX_DEPTH`]].
    pub depth: usize,
    /// Namespace declarations in scope at one place [[`MAX_NAMESPACES`]].
    pub namespaces: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document_length: DEFAULT_MAX_DOCUMENT_LENGTH,
            token_length: MAX_TOKEN_LENGTH,
            depth: MAX_DEPTH,
            namespaces: MAX_NAMESPACES,
        }
    }
}
