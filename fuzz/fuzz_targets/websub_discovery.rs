//! Links, pages and feeds: hubs are found where a publisher writes, nowhere else.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::websub::discovery(data));
