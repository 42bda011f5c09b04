//! A form or query of WebSub: a request or verification reads back as it is written.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::websub::form(data));
