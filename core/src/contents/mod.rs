//! The store of contents: bytes under their digest, so that equal bytes are stored once.
//!
//! A row of the change log refers to stored bytes by their address. The order is: put the bytes,
//! [`ContentStore::sync`], record the row, drop the pin. A crash at any point leaves at most bytes
//! without a row; no row refers to missing bytes.

mod content;
mod digest;
mod error;
pub mod made;
mod pins;
mod store;

pub use content::{Bytes, Content, ContentSource};
pub use digest::{ContentHasher, SequentialCheck, address_of, digest_of};
pub use error::{Error, ErrorKind};
pub use pins::{PinnedContent, Pins};
pub use store::ContentStore;
