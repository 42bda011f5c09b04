//! A robots.txt: bounded rules that fit as they are defined to.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_destination::fuzz_property::robots(data));
