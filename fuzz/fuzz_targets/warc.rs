//! WARC records and index lines: read the same however they come, and as they were written.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::properties::warc(data));
