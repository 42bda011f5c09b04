//! RDF Patch: the same rows however they come, written so that they read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rdf_patch::fuzz_property::patch(data));
