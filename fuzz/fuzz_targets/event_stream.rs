//! An event stream: the same events however it is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::websub::events(data));
