//! RDF: syntaxes, descriptions of entities, canonical N-Triples and their differences.
#![doc = include_str!("../README.md")]
