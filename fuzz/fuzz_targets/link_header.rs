//! A Link header: what is read can be written and read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::properties::link_header(data));
