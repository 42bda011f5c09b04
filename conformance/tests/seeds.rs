//! The fuzzed properties hold for the seeds, and for the seeds with a byte removed.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// A fuzz target: its name, the path of its property as text, and the property.
type Target = (&'static str, &'static str, fn(&[u8]));

macro_rules! targets {
    ($($name:ident => $($part:ident)::+,)*) => {
        /// Every file of `fuzz/fuzz_targets`. That folder is a workspace of its own, which other
        /// builds do not compile: that its calls exist is checked here.
        const TARGETS: &[Target] =
            &[$((stringify!($name), concat!($("::", stringify!($part)),+), $($part)::+ as fn(&[u8]))),*];

        mod seeds_hold_the_property_of {
            $(#[test]
            fn $name() {
                super::each_folder(stringify!($name), $($part)::+);
            })*
        }
    };
}

targets! {
    bandwidth => abreast_net::fuzz_property::bandwidth,
    batch => abreast_server::fuzz_property::batch,
    discovery => abreast_destination::fuzz_property::discovery,
    emm_feed => abreast_conformance::emm::document,
    event_stream => abreast_conformance::websub::events,
    filter => abreast_core::fuzz_property::filter,
    freshness => abreast_destination::fuzz_property::freshness,
    import => abreast_server::fuzz_property::import,
    link_header => abreast_conformance::properties::link_header,
    links => abreast_source::fuzz_property::links,
    netrc => abreast_net::fuzz_property::netrc,
    package => abreast_destination::fuzz_property::package,
    patch => abreast_destination::fuzz_property::patch,
    rdf_accept => abreast_conformance::rdf::accept,
    rdf_canonical => abreast_rdf::fuzz_property::canonical,
    rdf_description => abreast_rdf::fuzz_property::description,
    rdf_entity_patch => abreast_rdf::fuzz_property::entity_patch,
    rdf_patch => rdf_patch::fuzz_property::patch,
    rdf_syntaxes => abreast_conformance::rdf::syntaxes,
    request => abreast_server::fuzz_property::request,
    resourcesync_0_1 => abreast_conformance::resourcesync_0_1::document,
    robots => abreast_destination::fuzz_property::robots,
    sdshare_feed => abreast_conformance::sdshare::feed,
    sdshare_since => abreast_conformance::sdshare::since,
    sitemap => abreast_conformance::properties::sitemap,
    uri_to_path => abreast_destination::fuzz_property::uri_to_path,
    validator => abreast_validator::fuzz_property::document,
    validator_package => abreast_validator::fuzz_property::package,
    w3c_datetime => abreast_conformance::properties::w3c_datetime,
    warc => abreast_conformance::properties::warc,
    websub_discovery => abreast_conformance::websub::discovery,
    websub_form => abreast_conformance::websub::form,
    websub_signature => abreast_conformance::websub::signature,
}

/// Seeds that a target takes besides its own.
const MORE_SEEDS: [(&str, &str); 6] = [
    ("resourcesync_0_1", "conformance/resourcesync-0.1"),
    ("sdshare_feed", "formats/sdshare/tests/feeds"),
    ("sitemap", "conformance/resourcesync-1.1"),
    ("validator", "conformance/resourcesync-0.1"),
    ("validator", "conformance/resourcesync-1.1"),
    ("validator_package", "fuzz/seeds/package"),
];

fn in_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn each_seed(folder: &str, property: fn(&[u8])) {
    let folder = in_root(folder);
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

fn each_folder(target: &str, property: fn(&[u8])) {
    each_seed(&format!("fuzz/seeds/{target}"), property);
    for (_, folder) in MORE_SEEDS.iter().filter(|(of, _)| *of == target) {
        each_seed(folder, property);
    }
}

#[test]
fn every_fuzz_target_calls_its_property() {
    let manifest: toml::Table =
        std::fs::read_to_string(in_root("fuzz/Cargo.toml")).unwrap().parse().unwrap();
    let mut names = Vec::new();
    for target in std::fs::read_dir(in_root("fuzz/fuzz_targets")).unwrap() {
        let target = target.unwrap().path();
        let name = target.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&target).unwrap();
        let call = TARGETS
            .iter()
            .find(|(of, ..)| *of == name)
            .map(|(_, path, _)| path.trim_start_matches("::"));
        let call = call.unwrap_or_else(|| panic!("{name} is not in the list"));
        assert!(
            text.ends_with(&format!("fuzz_target!(|data: &[u8]| {call}(data));\n")),
            "{name} calls {call}: {text}"
        );
        let dependency = call.split("::").next().unwrap().replace('_', "-");
        assert!(
            manifest["dependencies"].get(&dependency).is_some(),
            "fuzz/Cargo.toml does not have {dependency}"
        );
        names.push(name);
    }
    names.sort();
    assert_eq!(names, TARGETS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    let mut built: Vec<_> = manifest["bin"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin["name"].as_str().unwrap())
        .collect();
    built.sort_unstable();
    assert_eq!(built, names);
}
