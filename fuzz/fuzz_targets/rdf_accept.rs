//! `Accept` fields: the choice is one of the offers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| abreast_conformance::rdf::accept(data));
