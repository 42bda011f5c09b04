//! Blank nodes: descriptions, IRIs for them, and parts that other programs gave IRIs.

pub(crate) mod description;
pub(crate) mod parts;
pub(crate) mod skolem;
