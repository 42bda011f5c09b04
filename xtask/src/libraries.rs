//! The libraries that a program is built from, as a bill of materials in `CycloneDX` 1.5.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::process::{cargo, run_quietly};

/// `cargo metadata`, as far as it is used.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    description: Option<String>,
    repository: Option<String>,
}

/// The list of the libraries that `abreast` links for a target, without those of tests and builds.
pub(crate) fn cyclone_dx(source: &Path, triple: &str, version: &str, time: &str) -> Result<String> {
    let tree = run_quietly(
        cargo(&[
            "tree", "--locked", "-p", "abreast", "-e", "normal", "--prefix", "none", "--format",
        ])
        .args(["{p}", "--target", triple])
        .current_dir(source),
    )?;
    let metadata = run_quietly(
        cargo(&["metadata", "--locked", "--format-version", "1", "--filter-platform", triple])
            .current_dir(source),
    )?;
    let metadata: Metadata =
        serde_json::from_str(&metadata).context("cannot read `cargo metadata`")?;
    let known: HashMap<(&str, &str), &Package> =
        metadata.packages.iter().map(|one| ((&*one.name, &*one.version), one)).collect();
    let mut linked: Vec<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    linked.sort_unstable();
    linked.dedup();
    let components: Vec<Value> = linked
        .iter()
        .filter_map(|place| known.get(place))
        .filter(|package| package.name != "abreast")
        .map(|package| component(package))
        .collect();
    let date =
        run_quietly(Command::new("date").args(["-u", "-d", &format!("@{time}"), "+%FT%TZ"]))?;
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": date.trim(),
            "component": {
                "type": "application",
                "name": "abreast",
                "version": version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
}

fn component(package: &Package) -> Value {
    let (name, version) = (&package.name, &package.version);
    let mut component = json!({ "type": "library", "name": name, "version": version });
    if package.source.is_some() {
        component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
    }
    if let Some(license) = &package.license {
        // An older way to write `OR`.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(description) = &package.description {
        component["description"] =
            json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}
