//! Dates, stamps, ranges and addresses of requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_server::check_any_request(data));
