#![doc = include_str!("../README.md")]

mod emm;
mod fetch;
mod report;
mod resourcesync;
mod resourcesync_0_1;
mod run;
mod sdshare;
mod walk;

pub use abreast_core::Severity;
pub use report::document::{Document, Report};
pub use report::facts::{ChangeFeedFacts, FeedFacts, FullDownload, Unreachable};
pub use report::finding::Finding;
pub use report::options::{Options, Share};
pub use report::render::{document_json, html, ndjson, rules_table, text};
pub use report::rule::{Level, Mode, Rule, severity_word};
pub use report::rules;
#[doc(hidden)]
pub use run::fuzz_property;
pub use run::{check_document, validate};
