//! The validator: any bytes as a package.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_validator::fuzz_property::package(data));
