//! Descriptions of entities: what belongs to one, how two differ, their labels, and blank nodes with IRIs.

pub(crate) mod closure;
pub(crate) mod diff;
pub(crate) mod labels;
pub(crate) mod skolem;
pub mod sparql;
pub(crate) mod summary;
