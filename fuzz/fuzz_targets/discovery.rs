//! Link headers, pages and robots.txt that name ResourceSync documents.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_destination::fuzz_property::discovery(data));
