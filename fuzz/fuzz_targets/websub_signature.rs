//! A signature header and a body: what is signed verifies, and only that.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::websub::signature(data));
