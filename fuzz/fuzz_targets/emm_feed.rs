//! A document of a change feed: what is read can be written and read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::emm::document(data));
