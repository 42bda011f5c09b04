//! Rules, findings and the report, independent of protocols.

mod document;
mod facts;
mod finding;
mod options;
mod render;
mod rule;
pub mod rules;

pub use document::{Document, Report};
pub(crate) use document::{MAKING, NO_END};
pub use facts::{ChangeFeedFacts, FeedFacts, FullDownload, Unreachable};
pub use finding::Finding;
pub(crate) use finding::Findings;
pub(crate) use options::MAX_DOCUMENTS;
pub use options::{Options, Share};
pub use render::{document_json, html, ndjson, rules_table, text};
pub use rule::{Level, Mode, Rule, severity_word};
