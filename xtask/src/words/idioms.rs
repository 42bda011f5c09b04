//! Idioms of the house and the plain words for them; house names of types; long names of tests.

/// Idioms, and the plain words to use instead. A phrase matches whole words, in any letter case.
const IDIOMS: [(&[&str], &str); 12] = [
    (&["tell", "tells", "telling", "told"], "report, print, notify or list"),
    (&["say", "says", "saying", "said"], "state, print or set"),
    (&["look", "looks", "looked", "looking"], "check, inspect, read or search"),
    (&["mend", "mends", "mended", "mending"], "repair, fix or correct"),
    (&["sound", "unsound", "soundness"], "intact, consistent or undamaged"),
    (&["anew", "once more"], "again, or a verb such as restart, recreate or recount"),
    (&["whoever", "in so many words"], "the clients, users or programs that are meant"),
    (&["be had", "been had"], "fetch, available"),
    (&["for now", "for ever", "for good"], "temporarily, forever, permanently"),
    (&["held against", "hold against"], "compare with, check against"),
    (&["goes on", "go on", "went on", "going on"], "continue"),
    (&["at work"], "running"),
];

/// Words after which one of [`IDIOMS`] is a term: `look up`, `looks like`.
const TERMS: [(&str, &str); 6] = [
    ("look", "up"),
    ("looks", "up"),
    ("looked", "up"),
    ("looking", "up"),
    ("look", "like"),
    ("looks", "like"),
];

/// Names that nobody could search for; each has a standard name.
const HOUSE_NAMES: [&str; 10] =
    ["Desk", "Crew", "Bell", "Book", "Ground", "Entrance", "Shelf", "Shelves", "Teller", "Witness"];

/// Longest name of a test.
const TEST_NAME_MAX: usize = 60;

/// The idioms and house names in a line.
pub(super) fn idioms_in(line: &str) -> Vec<String> {
    let is_word = |character: char| {
        character.is_alphanumeric() || character == '_' || character == '-' || character == '\''
    };
    let words: Vec<&str> =
        line.split(|character| !is_word(character)).filter(|word| !word.is_empty()).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut faults = Vec::new();
    for (phrases, instead) in IDIOMS {
        for phrase in phrases {
            let first = phrase.split(' ').next().unwrap_or_default();
            if !lower.iter().any(|word| word == first) {
                continue;
            }
            let parts: Vec<&str> = phrase.split(' ').collect();
            for (at, window) in lower.windows(parts.len()).enumerate() {
                let next = lower.get(at + parts.len()).map_or("", String::as_str);
                if window.iter().eq(parts.iter()) && !TERMS.contains(&(*phrase, next)) {
                    faults.push(format!("`{phrase}` (help: {instead})"));
                }
            }
        }
    }
    for name in HOUSE_NAMES.iter().filter(|name| words.contains(name)) {
        faults
            .push(format!("`{name}` (help: the standard term of the field; see docs/glossary.md)"));
    }
    faults
}

/// Types with one of [`HOUSE_NAMES`].
pub(super) fn house_types(text: &str) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split(|character: char| !character.is_alphanumeric()).collect();
        let declared =
            words.windows(2).find(|pair| ["struct", "enum", "trait", "type"].contains(&pair[0]));
        if let Some(name) = declared.map(|pair| pair[1]).filter(|name| HOUSE_NAMES.contains(name)) {
            faults.push((
                number + 1,
                format!("type `{name}` (help: the standard term; see docs/glossary.md)"),
            ));
        }
    }
    faults
}

/// Names of tests that are longer than [`TEST_NAME_MAX`].
pub(super) fn long_test_names(text: &str) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut is_test = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if name.len() > TEST_NAME_MAX {
                let length = name.len();
                faults.push((
                    number + 1,
                    format!("`{name}` has {length} characters (help: at most {TEST_NAME_MAX})"),
                ));
            }
            is_test = false;
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_has_no_idioms() {
        assert!(
            idioms_in("Names are looked up in the index, and sounds like soundcheck").is_empty()
        );
    }

    #[test]
    fn idioms_are_found_as_whole_words_and_phrases() {
        assert_eq!(idioms_in("The list says so.").len(), 1);
        assert_eq!(idioms_in("It could not be had for now").len(), 2);
        assert_eq!(idioms_in("the `Bell` rings").len(), 1);
        assert!(idioms_in("essays, saying-free? no: be hadrian").is_empty());
    }

    #[test]
    fn types_with_house_names_are_found() {
        assert_eq!(
            house_types("pub(crate) struct Bell;\nstruct Bells;\nlet bell = Bell;\n").len(),
            1
        );
    }

    #[test]
    fn long_names_of_tests_are_found() {
        let long = "x".repeat(TEST_NAME_MAX + 1);
        let text = format!(
            "#[test]\nfn {long}() {{}}\nfn {long}() {{}}\n#[tokio::test]\nasync fn short() {{}}\n"
        );
        assert_eq!(long_test_names(&text).len(), 1);
    }
}
