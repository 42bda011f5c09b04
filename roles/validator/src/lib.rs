#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod emm;
mod fetch;
mod report;
mod resourcesync;
mod resourcesync_0_1;
mod run;
mod sdshare;
mod walk;

pub use abreast_core::Severity;
pub use report::{
    ChangeFeedFacts, Document, FeedFacts, Finding, FullDownload, Level, Mode, Options, Report,
    Rule, Share, Unreachable, document_json, html, ndjson, rules, rules_table, severity_word, text,
};
#[doc(hidden)]
pub use run::fuzz_property;
pub use run::{check_document, validate};
