//! `Cache-Control`, `Age` and `Retry-After`: what is older is never fresher.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_destination::fuzz_property::freshness(data));
