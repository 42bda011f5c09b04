//! Generated files, and the check that they are up to date.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::limits;
use crate::metrics;
use crate::process::root;
use crate::settings;

/// What makes the text of a file.
type Made = fn() -> Result<String>;

/// The files of the repository that are made from its code.
const GENERATED: &[(&str, Made)] = &[
    ("docs/limits.md", limits::table),
    ("docs/configuration.md", settings::page),
    ("docs/metrics.md", metrics::page),
];

/// Fails when a generated file differs from what the code makes now.
pub(crate) fn check() -> Result<()> {
    for (path, made) in GENERATED {
        let kept = fs::read_to_string(root().join(path)).unwrap_or_default();
        if kept != made()? {
            bail!("{path} is not up to date\n  help: run `cargo xtask generate`");
        }
    }
    Ok(())
}

/// Rewrites the generated files.
pub(crate) fn write() -> Result<()> {
    for (path, made) in GENERATED {
        fs::write(root().join(path), made()?).with_context(|| format!("cannot write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}
