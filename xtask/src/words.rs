//! Does the repository speak of itself only? It names no registry host and no machine's paths.

use std::fs;

use anyhow::{Result, bail};

use crate::process::root;
use crate::tree;

/// What may not stand in a file of the repository, and why. Written in two halves, so that this list
/// is not found by itself.
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

/// `cargo xtask words`.
pub(crate) fn run() -> Result<()> {
    let mut faults = Vec::new();
    let files = tree::files(&root(), &[])?;
    for file in files.iter().filter(|file| !file.ends_with("Cargo.lock")) {
        let bytes = fs::read(file)?;
        for (number, word, why) in faults_in(&String::from_utf8_lossy(&bytes)) {
            faults.push(format!("  {}:{number}: `{word}` is {why}", tree::shown(file)));
        }
    }
    if !faults.is_empty() {
        bail!("{} words do not belong here\n{}", faults.len(), faults.join("\n"));
    }
    println!("{} files speak of the project only", files.len());
    Ok(())
}

fn faults_in(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    if !FORBIDDEN.iter().any(|(word, _)| text.contains(word)) {
        return Vec::new();
    }
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(number, line)| {
            FORBIDDEN.iter().filter(|(word, _)| line.contains(word)).map(move |(word, why)| (number + 1, *word, *why))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_host_is_found_with_its_line() {
        let text = format!("one\nsee https://{}/project\n", FORBIDDEN[0].0);
        assert_eq!(faults_in(&text), [(2, FORBIDDEN[0].0, REGISTRY)]);
    }

    #[test]
    fn ordinary_text_is_fine() {
        assert!(faults_in("a root, its work and a registry").is_empty());
    }
}
