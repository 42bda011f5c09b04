//! RDF in each syntax: read the same however it comes, and written so that it reads back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::rdf::syntaxes(data));
