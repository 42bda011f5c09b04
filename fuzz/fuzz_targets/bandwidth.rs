//! A timetable of rates, and `Retry-After`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_net::fuzz_property::bandwidth(data));
