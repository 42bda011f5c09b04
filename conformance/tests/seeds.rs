//! The fuzzed properties hold for the seeds, and for the seeds with a byte removed.
#![allow(clippy::unwrap_used)]

use abreast_conformance::{properties, websub};
use std::path::Path;

fn each_seed(folder: &str, property: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut count = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        property(&bytes);
        // Some twenty places are enough here; fuzzing tries the others.
        for at in (0..bytes.len()).step_by(bytes.len() / 20 + 1) {
            property(&[&bytes[..at], &bytes[at + 1..]].concat());
        }
        count += 1;
    }
    assert!(count > 0, "{}", folder.display());
}

#[test]
fn documents_read_the_same_however_cut_and_can_be_written() {
    each_seed("resourcesync-1.1", properties::sitemap);
    each_seed("../fuzz/seeds/sitemap", properties::sitemap);
}

#[test]
fn datetimes_can_be_written() {
    each_seed("../fuzz/seeds/w3c_datetime", properties::w3c_datetime);
}

#[test]
fn links_can_be_written() {
    each_seed("../fuzz/seeds/link_header", properties::link_header);
}

#[test]
fn warc_reads_the_same_however_cut_and_as_written() {
    each_seed("../fuzz/seeds/warc", properties::warc);
}

#[test]
fn properties_of_the_destination_hold() {
    each_seed("../fuzz/seeds/uri_to_path", abreast_destination::check_path_map);
    each_seed("../fuzz/seeds/package", abreast_destination::check_package);
    each_seed("../fuzz/seeds/robots", abreast_destination::check_robots);
    each_seed("../fuzz/seeds/filter", abreast_destination::check_filter);
    each_seed("../fuzz/seeds/patch", abreast_destination::check_patch);
    each_seed("../fuzz/seeds/discovery", abreast_destination::check_discovery);
    each_seed("../fuzz/seeds/freshness", abreast_destination::check_freshness);
    each_seed("../fuzz/seeds/netrc", abreast_net::fuzz_property::netrc);
    each_seed("../fuzz/seeds/bandwidth", abreast_net::fuzz_property::bandwidth);
}

#[test]
fn properties_of_the_source_hold() {
    each_seed("../fuzz/seeds/links", abreast_source::links::check_any_input);
    each_seed("../fuzz/seeds/request", abreast_server::fuzz_property::request);
    each_seed("../fuzz/seeds/batch", abreast_server::fuzz_property::batch);
    each_seed("../fuzz/seeds/import", abreast_server::fuzz_property::import);
}

#[test]
fn validator_reports_the_same_however_a_document_is_cut() {
    each_seed("resourcesync-1.1", abreast_validator::fuzz_property::document);
    each_seed("../fuzz/seeds/validator", abreast_validator::fuzz_property::document);
    each_seed("../fuzz/seeds/validator_package", abreast_validator::fuzz_property::package);
    each_seed("../fuzz/seeds/package", abreast_validator::fuzz_property::package);
}

#[test]
fn websub_messages_round_trip_and_verify() {
    each_seed("../fuzz/seeds/websub_form", websub::form);
    each_seed("../fuzz/seeds/websub_signature", websub::signature);
    each_seed("../fuzz/seeds/websub_discovery", websub::discovery);
    each_seed("../fuzz/seeds/event_stream", websub::events);
}

#[test]
fn every_fuzz_target_has_seeds() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    for target in std::fs::read_dir(fuzz.join("fuzz_targets")).unwrap() {
        let target = target.unwrap().path();
        let name = target.file_stem().unwrap();
        assert!(fuzz.join("seeds").join(name).is_dir(), "{}", name.display());
    }
}
