//! Input of `abreast import`, as lines and as a table: read the same however it comes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_server::fuzz_property::import(data));
