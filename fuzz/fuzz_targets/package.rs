//! Any bytes as a package: its directory, its manifest, its members.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_destination::fuzz_property::package(data));
