//! Which names of a folder are published, and with which media type.
#![allow(clippy::print_stdout)]

use abreast_source::{is_published_name, media_type_of};

fn main() {
    for name in ["a.pdf", ".draft.pdf", "letter.txt~", "data.ttl"] {
        if is_published_name(name.as_bytes()) {
            println!("{name}: published as {}", media_type_of(name.as_bytes()));
        } else {
            println!("{name}: hidden or temporary, not published");
        }
    }
    assert!(is_published_name(b"a.pdf") && !is_published_name(b".draft.pdf"));
}
