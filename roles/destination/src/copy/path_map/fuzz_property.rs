//! Properties of every URI and every path: for fuzzing and for the tests of its seeds.

use super::{Form, MAX_PATH_BYTES, NameRules, PathMap, STATE_FOLDER, TEMPORARY_PREFIX};

/// Properties for any input: the path stays inside the folder, is not a reserved name, and leads
/// back to the URI.
///
/// # Panics
/// A property does not hold.
pub fn check(data: &[u8]) {
    let (flags, text) = data.split_first().unwrap_or((&0, &[]));
    let rules = NameRules {
        folds_case: flags & 1 != 0,
        ascii_only: flags & 2 != 0,
        no_controls: flags & 32 != 0,
    };
    let form = if flags & 4 == 0 { Form::Plain } else { Form::Leaf };
    let base = if flags & 8 == 0 { "http://source.example/" } else { "http://source.example/set/" };
    let map = PathMap::new(base, rules).expect("a literal base");
    let text = String::from_utf8_lossy(text);
    let uri = if flags & 16 == 0 { format!("{base}{text}") } else { text.to_string() };
    let mut path = Vec::new();
    if map.path_into(&uri, form, &mut path).is_ok() {
        assert!(path.len() <= MAX_PATH_BYTES);
        for (number, name) in path.split(|byte| *byte == b'/').enumerate() {
            assert!(abreast_folder::is_component(name), "{uri:?} -> {path:?}");
            assert!(!name.starts_with(TEMPORARY_PREFIX), "{uri:?} -> {path:?}");
            assert!(
                number > 0 || !name.eq_ignore_ascii_case(STATE_FOLDER.as_bytes()),
                "{uri:?} -> {path:?}"
            );
            assert!(!rules.ascii_only || name.is_ascii(), "{uri:?} -> {path:?}");
            assert!(
                !rules.no_controls || !name.iter().any(u8::is_ascii_control),
                "{uri:?} -> {path:?}"
            );
        }
        let shown = String::from_utf8_lossy(&path);
        assert_eq!(map.uri(&path), Some((uri, form)), "{shown}");
    }
    // The bytes as a path: the URI of the path leads back to it.
    let path = data.get(1..).unwrap_or_default();
    if let Some((uri, form)) = map.uri(path) {
        let mut again = Vec::new();
        assert_eq!(map.path_into(&uri, form, &mut again), Ok(()));
        assert_eq!(again, path, "{uri:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use abreast_testkit::Random;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn paths_of_any_input_stay_inside_and_lead_back(data: Vec<u8>) {
            check(&data);
        }

        #[test]
        fn paths_of_likely_input_stay_inside_and_lead_back(flags: u8, text in "([a-cA-C./?#%_+!^~\\\\:]|%2[eEfF5]|%5[cC]|http://h|\\.abreast|\\.%25~|é){0,24}") {
            let mut data = vec![flags];
            data.extend_from_slice(text.as_bytes());
            check(&data);
        }
    }

    /// The fuzz target's body over many seeded inputs; the count is raised for acceptance by the
    /// environment.
    #[test]
    fn seeded_inputs_hold_the_properties() {
        let count: u64 = std::env::var("ABREAST_FUZZ_RUNS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(20_000);
        let pieces: [&[u8]; 24] = [
            b"/",
            b"..",
            b".",
            b"%2e",
            b"%2F",
            b"%5C",
            b"?",
            b"#",
            b"%25",
            b"%_",
            b"%+",
            b"%!",
            b"%^",
            b"a",
            b"B",
            b"\xc3\xa9",
            b"%FF",
            b"%00",
            b"\\",
            b"http://h/",
            b".abreast",
            b":",
            b"~",
            b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ];
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
        let mut data = Vec::new();
        for _ in 0..count {
            data.clear();
            data.push(random.number() as u8);
            for _ in 0..random.below(14) {
                data.extend_from_slice(random.of::<&[u8]>(&pieces));
            }
            check(&data);
        }
    }
}
