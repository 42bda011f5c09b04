//! Filter rules: the first rule that matches decides.
#![allow(clippy::print_stdout)]

use abreast_core::filter::{Decision, Filter, Subject};

fn main() -> Result<(), String> {
    let filter = Filter::new(["- drafts/", "+ *.pdf", "- *"])?;
    for path in ["papers/a.pdf", "drafts/b.pdf", "papers/notes.txt"] {
        let subject = Subject { path: path.as_bytes(), ..Subject::default() };
        match filter.decide(&subject) {
            Decision::Taken(rule) => println!("{path}: taken by `{rule}`"),
            Decision::Excluded(rule) => println!("{path}: left out by `{rule}`"),
            Decision::Unknown => println!("{path}: depends on the media type"),
        }
    }
    let excluded = Subject { path: b"drafts/b.pdf", ..Subject::default() };
    assert!(matches!(filter.decide(&excluded), Decision::Excluded("- drafts/")));
    Ok(())
}
