//! A feed of SDShare: same outcome however it is cut, and it can be written and read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::sdshare::feed(data));
