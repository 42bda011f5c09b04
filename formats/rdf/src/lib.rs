//! RDF: syntaxes, descriptions of entities, canonical N-Triples and their differences.
#![doc = include_str!("../README.md")]

mod canonical;
mod entity;
mod notation;
mod patch;
mod read;
mod write;

pub use canonical::budget::DescriptionBudget;
pub use canonical::budget::TooLarge;
pub use canonical::label::Naming;
pub use canonical::lower_case_tags::with_lower_case_tags;
pub use canonical::plain::are_canonical;
pub use canonical::{Canonical, MAX_WORK, canonical, canonical_lines, canonical_within};
pub use entity::closure::{
    BlankStatements, DescribeError, Description, DescriptionLimits, Entities, Findings,
    MAX_FINDINGS, SharedBlank, describe, object_blank, subject_of,
};
pub use entity::diff::{Difference, OtherVersion, difference};
pub use entity::labels::{Deprecation, deprecation, entity_labels, labels};
pub use entity::skolem::{
    SkolemError, blank_skolems, is_own_skolem_iri, is_skolem_iri, loose_skolem, skolem_label,
    skolem_prefix, skolem_root, skolemize, split_skolem, unskolemize,
};
pub use entity::sparql;
pub use entity::summary::{MAX_CLASSES, MAX_LABEL_LENGTH, MAX_LABELS, Summary, summary};
pub use notation::accept::choose;
pub use notation::statement::{
    Statement, StatementError, TermText, is_iri, is_language_tag, statements, write_statement,
};
pub use notation::syntax::{FileSyntax, Syntax, is_rdf_xml};
pub use patch::chain::{AppliedChain, ChainError, apply_entity_patches};
pub use patch::entity_patch::{
    AppliedPatch, ApplyError, EntityPatch, EntityPatchError, PatchBlankNodes, PatchRows,
    apply_entity_patch, digest_text,
};
#[doc(hidden)]
pub use patch::fuzz_property;
pub use read::any::read;
pub use read::contexts::Contexts;
pub use read::error::ReadError;
pub use read::left_out::LeftOut;
pub use read::lines::read_lines;
pub use read::options::{Expansion, ReadLimits, ReadOptions, Visit};
pub use write::{
    CannotWrite, InvalidPrefix, Prefixes, WriteError, WriteOptions, Writer, can_write, write,
};
