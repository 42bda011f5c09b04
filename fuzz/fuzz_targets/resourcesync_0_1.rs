//! A document of ResourceSync 0.1: same outcome however it is cut, and it can be written and read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::resourcesync_0_1::document(data));
