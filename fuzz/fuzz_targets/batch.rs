//! A batch of changes: arrays and lines have the same result, and recorded changes are returned
//! unchanged.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_server::fuzz_property::batch(data));
