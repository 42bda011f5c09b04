//! `since` of fragments feeds: what a client adds to an address is what a server reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::sdshare::since(data));
