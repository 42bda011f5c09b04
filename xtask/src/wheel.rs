//! `cargo xtask wheel`: the package for Python, as a wheel in `target/wheels/`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{root, run_quietly, target, without_package};
use crate::python;

/// Builds the wheel of a release, and prints its path.
pub(crate) fn run_task(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("`cargo xtask wheel` has no arguments");
    }
    println!("{}", build("release", &target().join("wheels"))?.display());
    Ok(())
}

/// Builds the wheel in a profile of cargo, as the only file of `folder`.
pub(crate) fn build(profile: &str, folder: &Path) -> Result<PathBuf> {
    let bin = python::environment()?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let mut command = Command::new(bin.join("maturin"));
    command.args(["build", "--quiet", "--locked", "--profile", profile, "--out"]).arg(folder);
    command.arg("--interpreter").arg(bin.join("python"));
    command.arg("--manifest-path").arg(root().join("app/python/Cargo.toml"));
    without_package(&mut command);
    run_quietly(command.env("CARGO_TARGET_DIR", target()))
        .context("cannot build the package for Python")?;
    let wheel = |path: &PathBuf| path.extension() == Some(OsStr::new("whl"));
    let mut files = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(wheel).context("maturin ended without an error, but there is no wheel")
}
