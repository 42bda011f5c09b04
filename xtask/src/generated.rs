//! Generated files, and the check that they are up to date.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, root, run_quietly};

/// A file of the repository and the arguments that make `abreast` print it.
const GENERATED: &[(&str, &[&str])] = &[];

/// Fails when a generated file differs from what the program prints now.
pub(crate) fn check() -> Result<()> {
    for (path, arguments) in GENERATED {
        let kept = fs::read_to_string(root().join(path)).unwrap_or_default();
        if kept != printed(arguments)? {
            bail!("{path} is not up to date\n  help: run `cargo xtask generate`");
        }
    }
    Ok(())
}

/// Rewrites the generated files.
pub(crate) fn write() -> Result<()> {
    for (path, arguments) in GENERATED {
        fs::write(root().join(path), printed(arguments)?)
            .with_context(|| format!("cannot write {path}"))?;
        println!("wrote {path}");
    }
    println!("{} generated files", GENERATED.len());
    Ok(())
}

fn printed(arguments: &[&str]) -> Result<String> {
    run_quietly(cargo(&["run", "--quiet", "-p", "abreast", "--"]).args(arguments))
}
