//! The validator: findings are the same however a document is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_validator::fuzz_property::document(data));
