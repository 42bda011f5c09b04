//! Compares what a list states about a file with the file: a time and digests.
#![allow(clippy::print_stdout)]

use abreast_webtypes::{Algorithm, Digests, W3cDatetime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listed_time = W3cDatetime::parse(b"2026-01-31T10:00:00+01:00")?;
    let file_time = W3cDatetime::parse(b"2026-01-31T09:00:00Z")?;
    println!("same instant: {}", listed_time.instant == file_time.instant);

    let mut listed = Digests::default();
    listed.parse_into(b"md5:5d41402abc4b2a76b9719d911017c592")?;
    let mut found = Digests::default();
    found.parse_into(b"md5:7d793037a0760186574b0282f2f435e7")?;
    println!("digests agree: {:?}", listed.agree(&found));

    // Digests of different algorithms neither agree nor differ.
    let mut other = Digests::default();
    other.set(Algorithm::Sha256, &[0; 32]);
    println!("digests of other algorithms agree: {:?}", listed.agree(&other));

    assert_eq!((listed.agree(&found), listed.agree(&other)), (Some(false), None));
    Ok(())
}
