//! RDF: syntaxes, descriptions of entities, canonical N-Triples and their differences.
#![doc = include_str!("../README.md")]

mod accept;
mod budget;
mod canonical;
mod closure;
mod contexts;
mod diff;
mod entity_labels;
mod entity_patch;
mod input;
mod json_ld;
mod json_ld_base;
mod json_ld_dropped;
mod json_memory;
mod language_tags;
mod left_out;
mod lines;
mod lower_case_tags;
mod nesting;
mod patch_chain;
mod plain;
mod rdf_xml;
mod read;
mod read_error;
mod read_options;
mod skolem;
pub mod sparql;
mod statement;
mod summary;
mod syntax;
mod term_chains;
mod terse;
mod write;

pub use crate::budget::TooLarge;
pub use crate::canonical::label::Naming;
pub use crate::read_options::{Expansion, ReadLimits, ReadOptions, Visit};
pub use accept::choose;
pub use budget::DescriptionBudget;
pub use canonical::{Canonical, MAX_WORK, canonical, canonical_lines, canonical_within};
pub use closure::{
    BlankStatements, DescribeError, Description, DescriptionLimits, Entities, Findings,
    MAX_FINDINGS, SharedBlank, describe, object_blank, subject_of,
};
pub use contexts::Contexts;
pub use diff::{Difference, OtherVersion, difference};
pub use entity_labels::{Deprecation, Label, deprecation, entity_labels};
pub use entity_patch::{
    AppliedPatch, ApplyError, EntityPatch, EntityPatchError, PatchBlankNodes, PatchRows,
    apply_entity_patch, digest_text,
};
pub use left_out::LeftOut;
pub use lines::read_lines;
pub use lower_case_tags::with_lower_case_tags;
pub use patch_chain::{AppliedChain, ChainError, apply_entity_patches};
pub use plain::are_canonical;
pub use read::read;
pub use read_error::ReadError;
pub use skolem::{
    SkolemError, blank_skolems, is_own_skolem_iri, is_skolem_iri, loose_skolem, skolem_label,
    skolem_prefix, skolem_root, skolemize, split_skolem, unskolemize,
};
pub use statement::{Statement, StatementError, TermText, is_iri, statements, write_statement};
pub use summary::{MAX_CLASSES, MAX_LABEL_LENGTH, Summary, labels, summary};
pub use syntax::{FileSyntax, Syntax, is_rdf_xml};
pub use write::{
    CannotWrite, InvalidPrefix, Prefixes, WriteError, WriteOptions, Writer, can_write, write,
};

/// Properties that hold for any bytes, for fuzzing.
#[doc(hidden)]
pub mod fuzz_property;
