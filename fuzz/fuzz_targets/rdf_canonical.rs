//! Graphs: one canonical form whatever the order and the labels.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_rdf::fuzz_property::canonical(data));
