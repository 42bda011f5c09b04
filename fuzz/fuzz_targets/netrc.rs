//! A `.netrc` file: its entries can be written and read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_net::fuzz_property::netrc(data));
