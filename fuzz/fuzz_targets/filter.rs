//! Filter rules: the first that decides alone decides among others.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_core::fuzz_property::filter(data));
