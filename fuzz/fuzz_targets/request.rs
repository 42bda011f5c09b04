//! Dates, stamps, ranges and addresses of requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_server::fuzz_property::request(data));
