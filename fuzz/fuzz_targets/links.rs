//! Sidecars of links and rules for links: targets stay in the set.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_source::fuzz_property::links(data));
