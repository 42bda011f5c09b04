//! Lines of N-Triples: canonical, as IRIs and back, as an update.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_rdf::fuzz_property::description(data));
