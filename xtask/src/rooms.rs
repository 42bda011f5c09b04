//! Rooms: the folders of a crate's `src`, in a declared order. A file imports from its own room and
//! from the rooms before it.
//!
//! `xtask/rooms.toml` declares the order for each crate that has one. No file but `lib.rs` and
//! `main.rs`, which may import everything, lies outside a room. Imports against the order that
//! exist are listed there too: the check fails if one is new, and also if a listed one is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::circles;
use crate::process::root;
use crate::tree;

/// The declared rooms.
const LIST: &str = "xtask/rooms.toml";
/// Files that may lie beside the rooms.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// The rooms of one crate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rooms {
    /// Folders of `src`, lowest first.
    order: Vec<String>,
    /// Imports against the order that exist, as `room/file -> room/file`.
    #[serde(default)]
    up: BTreeSet<String>,
}

/// Differences between the crates and their declared rooms.
pub(crate) fn faults() -> Result<Vec<String>> {
    let text =
        fs::read_to_string(root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let crates: BTreeMap<String, Rooms> = toml::from_str(&text)?;
    let (mut faults, mut up) = (Vec::new(), 0);
    for (folder, rooms) in &crates {
        faults.extend(of_crate(folder, rooms, &root().join(folder))?);
        up += rooms.up.len();
    }
    println!("{} crates with rooms in order, {up} imports against it", crates.len());
    Ok(faults)
}

fn of_crate(name: &str, rooms: &Rooms, folder: &Path) -> Result<Vec<String>> {
    let mut faults = loose(name, rooms, &folder.join("src"))?;
    let up: BTreeSet<String> = circles::arrows(folder)?
        .into_keys()
        .filter(|(from, to)| rooms.level(from) < rooms.level(to))
        .map(|(from, to)| format!("{from} -> {to}"))
        .collect();
    let new = lines(up.difference(&rooms.up));
    if !new.is_empty() {
        faults.push(format!(
            "  {name} has imports against the order of rooms in {LIST}{new}\n    \
             help: move what is imported to a lower room, or the code that imports it to a higher one"
        ));
    }
    let gone = lines(rooms.up.difference(&up));
    if !gone.is_empty() {
        faults.push(format!(
            "  {name} has no such imports any more{gone}\n    help: remove them from {LIST}"
        ));
    }
    Ok(faults)
}

/// Imports as the lines of a message, each after a line break.
fn lines<'a>(arrows: impl Iterator<Item = &'a String>) -> String {
    arrows.flat_map(|arrow| ["\n    ", arrow.as_str()]).collect()
}

/// Rooms that do not exist, and files and folders that are in none.
fn loose(name: &str, rooms: &Rooms, src: &Path) -> Result<Vec<String>> {
    for room in &rooms.order {
        ensure!(src.join(room).is_dir(), "{LIST} names {name}/src/{room}, which is no folder");
    }
    let mut faults = Vec::new();
    for file in tree::files(src, &[".rs"])? {
        let below = file.strip_prefix(src)?.to_string_lossy().into_owned();
        let room = below.split_once('/').map(|(room, _)| room.to_owned());
        let is_placed = match room {
            Some(room) => rooms.order.contains(&room),
            None => ROOTS.contains(&below.as_str()),
        };
        if !is_placed {
            faults.push(format!(
                "  {name}/src/{below} is in no room\n    help: move it into one of {}",
                rooms.order.join(", ")
            ));
        }
    }
    Ok(faults)
}

impl Rooms {
    /// The place of a file's room in the order; the root is above all.
    fn level(&self, file: &str) -> usize {
        let room = file.split('/').next().unwrap_or_default();
        self.order.iter().position(|other| other == room).unwrap_or(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_against_the_order_and_loose_files_are_found() {
        let folder = root().join("target/tmp/rooms");
        let src = folder.join("src");
        for (name, text) in [
            ("lib.rs", "mod low; mod high; mod stray; pub use high::top::Top;"),
            ("stray.rs", "fn f() {}"),
            ("low/mod.rs", "pub(crate) mod base; pub(crate) mod old;"),
            ("low/base.rs", "use crate::high::top::Top; pub(crate) struct Base;"),
            ("low/old.rs", "use crate::high::top::Top; use crate::Top as Same;"),
            ("high/mod.rs", "pub(crate) mod top;"),
            ("high/top.rs", "use crate::low::base::Base; pub(crate) struct Top;"),
        ] {
            fs::create_dir_all(src.join(name).parent().unwrap()).unwrap();
            fs::write(src.join(name), text).unwrap();
        }
        let rooms = Rooms {
            order: ["low", "high"].map(str::to_owned).to_vec(),
            up: ["low/old -> high/top", "low/gone -> high/top"].map(str::to_owned).into(),
        };
        let faults = of_crate("subject", &rooms, &folder).unwrap();
        let expected = [
            "subject/src/stray.rs is in no room",
            "against the order of rooms in xtask/rooms.toml\n    low/base -> high/top\n    help",
            "no such imports any more\n    low/gone -> high/top\n    help",
        ];
        assert_eq!(faults.len(), expected.len(), "{faults:?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
