//! The file of each URI of a set, and back.
#![allow(clippy::print_stdout)]

use abreast_destination::{Form, NameRules, PathMap};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let map = PathMap::new("https://example.org/set/", NameRules::default())?;
    for uri in [
        "https://example.org/set/a%20b.pdf",
        "https://example.org/set/list?page=2",
        "https://example.org/set/..%2F..%2Fetc%2Fpasswd",
    ] {
        let mut path = Vec::new();
        match map.path_into(uri, Form::Plain, &mut path) {
            Ok(()) => {
                println!("{uri} -> {}", String::from_utf8_lossy(&path));
                assert!(map.uri(&path).is_some_and(|(back, _)| back == uri));
            }
            // Nothing is ever written outside the folder.
            Err(error) => println!("{uri}: {error}"),
        }
    }
    Ok(())
}
