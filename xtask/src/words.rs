//! Words in the repository: no registry host, no path of one machine, and plain technical English.
//!
//! The idioms of [`IDIOMS`] are searched in the documents, and in the comments and texts of the
//! program. The names of tests are short, and module headers are statements. Test files are
//! searched for the first two only: they quote what others write.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::process::root;
use crate::tree;

/// Texts that no file may contain, and why. Written in two halves, so that this list does not find
/// itself.
const FORBIDDEN: [(&str, &str); 9] = [
    (concat!("pypi", ".org"), REGISTRY),
    (concat!("pythonhosted", ".org"), REGISTRY),
    (concat!("index.crates", ".io"), REGISTRY),
    (concat!("static.crates", ".io"), REGISTRY),
    (concat!("registry.npmjs", ".org"), REGISTRY),
    (concat!("deb.debian", ".org"), REGISTRY),
    (concat!("/root", "/."), MACHINE),
    (concat!("/work", "/main"), MACHINE),
    (concat!("/work", "/shared"), MACHINE),
];

const REGISTRY: &str = "a registry's host; the tools know where their packages come from";
const MACHINE: &str = "a path of one machine";

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

/// Lines that may keep their words: file, a part of the line, and the reason.
const EXCEPTIONS: [(&str, &str, &str); 8] = [
    ("adapters/store/src/backup.rs", "anew", "a column of the database"),
    ("adapters/store/src/integrity.rs", "anew", "a column of the database"),
    ("adapters/store/src/load.rs", "anew", "a column of the database"),
    ("adapters/store/src/repair.rs", "ifnull(anew", "a column of the database"),
    ("app/cli/src/check.rs", "\"sound\":", "a key of machine-readable output"),
    ("app/cli/src/check.rs", "\"looked\":", "a key of machine-readable output"),
    ("bench/src/benches/validate.rs", "\"said\":", "a key of machine-readable output"),
    ("xtask/src/coverage.rs", "\"says\"", "a key of the table"),
];

/// Files and folders that are not searched for idioms: decisions are superseded, never edited; this
/// file lists the idioms.
const NOT_PROSE: [&str; 2] = ["docs/decisions/", "xtask/src/words.rs"];

/// Longest name of a test.
const TEST_NAME_MAX: usize = 60;

/// `cargo xtask words`.
pub(crate) fn run() -> Result<()> {
    let mut faults = Vec::new();
    let files = tree::files(&root(), &[])?;
    for file in files.iter().filter(|file| !file.ends_with("Cargo.lock")) {
        let bytes = fs::read(file)?;
        let (text, shown) = (String::from_utf8_lossy(&bytes), tree::shown(file));
        for (number, word, why) in forbidden_in(&text) {
            faults.push(format!("  {shown}:{number}: `{word}` is {why}"));
        }
        if NOT_PROSE.iter().any(|folder| shown.starts_with(folder)) {
            continue;
        }
        for (number, fault) in prose_faults(file, &shown, &text) {
            faults.push(format!("  {shown}:{number}: {fault}"));
        }
    }
    if !faults.is_empty() {
        bail!("{} words do not belong here\n{}", faults.len(), faults.join("\n"));
    }
    println!("{} files contain no registry host, no machine path and no idiom", files.len());
    Ok(())
}

fn forbidden_in(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    if !FORBIDDEN.iter().any(|(word, _)| text.contains(word)) {
        return Vec::new();
    }
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(number, line)| {
            FORBIDDEN
                .iter()
                .filter(|(word, _)| line.contains(word))
                .map(move |(word, why)| (number + 1, *word, *why))
        })
        .collect()
}

/// Idioms, house names, headers and test names of one file.
fn prose_faults(file: &Path, shown: &str, text: &str) -> Vec<(usize, String)> {
    let is_test = shown.split('/').any(|part| ["tests", "tests.rs", "testkit"].contains(&part));
    let mut faults = Vec::new();
    let lines: Vec<(usize, String)> = match file.extension().and_then(|ending| ending.to_str()) {
        Some("rs") => {
            faults.extend(long_test_names(text));
            faults.extend(house_types(text));
            let header = text.lines().next().unwrap_or_default();
            if header.starts_with("//! ") && (header.contains("? ") || header.ends_with('?')) {
                faults.push((1, "a module header is a statement, not a question".to_owned()));
            }
            if is_test { Vec::new() } else { rust_prose(tree::before_tests(text)) }
        }
        Some("md") if !is_test => markdown_prose(text),
        Some("toml") if shown == "abreast.example.toml" => numbered(text),
        _ => Vec::new(),
    };
    for (number, line) in lines {
        let original = text.lines().nth(number - 1).unwrap_or_default();
        if EXCEPTIONS.iter().any(|(path, part, _)| *path == shown && original.contains(part)) {
            continue;
        }
        faults.extend(idioms_in(&line).into_iter().map(|fault| (number, fault)));
    }
    faults
}

fn numbered(text: &str) -> Vec<(usize, String)> {
    text.lines().enumerate().map(|(number, line)| (number + 1, line.to_owned())).collect()
}

/// The text of Markdown, without blocks of code and code within lines.
fn markdown_prose(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            lines.push((number + 1, prose));
        }
    }
    lines
}

/// The comments and texts of Rust code: a line that is a comment, or the parts of a line between
/// quotes.
fn rust_prose(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut in_text = false;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if !in_text && trimmed.starts_with("//") {
            lines.push((number + 1, trimmed.split('`').step_by(2).collect::<Vec<_>>().join("`")));
            continue;
        }
        let mut prose = String::new();
        let mut previous = ' ';
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if in_text => {
                    // An escape: its letter belongs to no word.
                    characters.next();
                    prose.push(' ');
                }
                '"' if !in_text && previous == '\'' => {}
                '"' => {
                    in_text = !in_text;
                    prose.push(' ');
                }
                '/' if !in_text && characters.peek() == Some(&'/') => {
                    prose.extend(characters.by_ref());
                }
                _ if in_text => prose.push(character),
                _ => {}
            }
            previous = character;
        }
        lines.push((number + 1, prose));
    }
    lines
}

/// The idioms and house names in a line.
fn idioms_in(line: &str) -> Vec<String> {
    let is_word = |character: char| {
        character.is_alphanumeric() || character == '_' || character == '-' || character == '\''
    };
    let words: Vec<&str> =
        line.split(|character| !is_word(character)).filter(|word| !word.is_empty()).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut faults = Vec::new();
    for (phrases, instead) in IDIOMS {
        for phrase in phrases {
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
fn house_types(text: &str) -> Vec<(usize, String)> {
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
fn long_test_names(text: &str) -> Vec<(usize, String)> {
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
    fn a_registry_host_is_found_with_its_line() {
        let text = format!("one\nsee https://{}/project\n", FORBIDDEN[0].0);
        assert_eq!(forbidden_in(&text), [(2, FORBIDDEN[0].0, REGISTRY)]);
    }

    #[test]
    fn ordinary_text_has_no_faults() {
        assert!(forbidden_in("a root, its work and a registry").is_empty());
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
    fn code_in_documents_is_not_prose() {
        let lines = markdown_prose("a `says` b\n```\nsays\n```\nend");
        assert_eq!(lines, [(1, "a ` b".to_owned()), (5, "end".to_owned())]);
    }

    #[test]
    fn comments_and_texts_of_code_are_prose() {
        let lines = rust_prose(
            "let told = \"a \\\"quoted\\\" text\"; // why\n/// doc\nlet x = '\"';\nlet y = 1;\n",
        );
        let prose: Vec<&str> = lines.iter().map(|(_, line)| line.trim()).collect();
        assert_eq!(prose, ["a  quoted  text / why", "/// doc", "", ""]);
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
