//! Any URI, any path: the map stays inside the folder and leads back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_destination::fuzz_property::uri_to_path(data));
