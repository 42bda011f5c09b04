//! Links, pages and feeds: hubs are found where a publisher writes, nowhere else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| abreast_conformance::websub::discovery(bytes));
