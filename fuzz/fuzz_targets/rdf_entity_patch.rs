//! Two descriptions: a patch leads from one to the other, and its reverse back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_rdf::fuzz_property::entity_patch(data));
