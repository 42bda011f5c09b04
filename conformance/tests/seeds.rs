//! Do the properties that fuzzing checks hold for its seeds, and for what is left when a byte of them is lost?
#![allow(clippy::unwrap_used)]

use abreast_conformance::properties;
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
