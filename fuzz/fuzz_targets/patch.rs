//! A patch: what comes out is never longer than it should be.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_destination::fuzz_property::patch(data));
