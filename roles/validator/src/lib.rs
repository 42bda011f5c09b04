#![doc = include_str!("../README.md")]

mod chain;
mod checker;
mod collect;
mod digest;
mod discover;
mod emm;
mod feeds;
mod fetch;
mod finding;
#[doc(hidden)]
pub mod fuzz_property;
mod inspect;
mod judge;
mod kind;
mod markup;
mod node;
mod notification;
mod options;
mod package;
mod relate;
mod related;
mod render;
mod report;
mod resourcesync_0_1;
mod rule;
pub mod rules;
mod run;
mod sample;
mod sdshare;
mod settle;
mod sketch;
mod topic;
mod uniform;
mod values;
mod walk;

pub use abreast_core::Severity;
pub use finding::Finding;
pub use options::{Options, Share};
pub use render::{document_json, html, ndjson, rules_table, text};
pub use report::{ChangeFeedFacts, Document, FeedFacts, FullDownload, Report, Unreachable};
pub use rule::{Level, Mode, Rule, severity_word};
pub use run::{check_document, validate};
