//! A batch of changes: an array is as good as lines, and what is recorded is told as it was.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_server::fuzz_property::batch(data));
