//! The checks a change must pass, fastest first, stopping at the first failure. CI runs the same
//! steps.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo, find_program, root, run_quietly};
use crate::{citations, coverage, faults, generated, layers, pages, subjects, test, tree, words};

/// How long each fuzz target runs with `--all`.
const FUZZ_SECONDS_EACH: u32 = 20;

/// One step: its name and what it does.
type Step = (&'static str, fn() -> Result<()>);

/// Checks without a test run.
const QUICK_STEPS: [Step; 12] = [
    ("fmt", || {
        process::run(&mut cargo(&["fmt", "--all", "--check"]))
            .context("help: run `cargo fmt --all`")
    }),
    ("layers", layers::run),
    ("citations", citations::run),
    ("coverage", coverage::check),
    ("pages", pages::check),
    ("words", || words::run(&[])),
    ("subjects", || subjects::run(&[])),
    ("faults", faults::check),
    ("generated files", generated::check),
    ("clippy", || clippy(&["--workspace"])),
    // Code that only a feature uses must not remain in a build without features.
    ("clippy without features", || clippy(&["--package", "abreast", "--no-default-features"])),
    ("doc", || {
        process::run(
            cargo(&["doc", "--workspace", "--no-deps", "--quiet"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    }),
];

const TEST_STEPS: [Step; 1] =
    [("tests", || if test::run(&[]) { Ok(()) } else { bail!("tests failed") })];

const MORE_STEPS: [Step; 5] = [
    ("dependencies", deny),
    ("each feature", each_feature),
    ("oldest Rust", oldest_rust),
    ("fuzz targets", fuzz_targets),
    ("short fuzz", short_fuzz),
];

fn run_steps(steps: &[Step]) -> Result<()> {
    for (name, step) in steps {
        println!("== {name}");
        let start = Instant::now();
        step().with_context(|| format!("the step `{name}` failed"))?;
        println!("== {name}: good ({:.1} s)", start.elapsed().as_secs_f32());
    }
    Ok(())
}

/// `cargo xtask check [--quick | --all]`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let groups: &[&[Step]] = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--quick"] => &[&QUICK_STEPS],
        [] => &[&QUICK_STEPS, &TEST_STEPS],
        ["--all"] => &[&QUICK_STEPS, &TEST_STEPS, &MORE_STEPS],
        _ => bail!("`check` takes `--quick`, `--all` or nothing"),
    };
    groups.iter().try_for_each(|steps| run_steps(steps))
}

fn deny() -> Result<()> {
    if find_program("cargo-deny").is_none() {
        println!("not run: cargo-deny is not installed\n  help: cargo install --locked cargo-deny");
        return Ok(());
    }
    process::run(&mut cargo(&["deny", "--all-features", "check"]))
}

/// Features that compile RocksDB; the code behind them is that of `oxigraph` of the Destination.
const SLOW_FEATURES: [(&str, &str); 2] =
    [("abreast", "oxigraph"), ("abreast-destination", "rocksdb")];

/// Builds each crate without its default features and with each feature alone.
fn each_feature() -> Result<()> {
    let mut built = 0;
    for (name, features) in layers::features()? {
        let is_quick = |feature: &&String| !SLOW_FEATURES.contains(&(&name, feature));
        for feature in [None].into_iter().chain(features.iter().filter(is_quick).map(Some)) {
            let mut command = cargo(&["check", "--quiet", "-p", &name, "--no-default-features"]);
            if let Some(feature) = feature {
                command.args(["--features", feature]);
            }
            process::run(&mut command)?;
            built += 1;
        }
    }
    println!("{built} builds");
    Ok(())
}

fn oldest_rust() -> Result<()> {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
    let version = manifest["workspace"]["package"]["rust-version"]
        .as_str()
        .context("Cargo.toml states no workspace.package.rust-version")?
        .to_owned();
    let list = match find_program("rustup") {
        Some(rustup) => run_quietly(Command::new(rustup).args(["toolchain", "list"]))?,
        None => String::new(),
    };
    // `1.89` and `1.89.0` are two toolchains to rustup; either will do.
    let mut names = list.lines().filter_map(|line| line.split_whitespace().next());
    let Some(toolchain) = names.find(|name| name.starts_with(&version)) else {
        println!(
            "not run: Rust {version} is not installed\n  help: rustup toolchain install {version}"
        );
        return Ok(());
    };
    let mut command = Command::new("rustup");
    command.args([
        "run",
        toolchain,
        "cargo",
        "check",
        "--workspace",
        "--all-targets",
        "--target-dir",
        "target/oldest",
    ]);
    process::run(command.current_dir(root()))
}

fn clippy(what: &[&str]) -> Result<()> {
    let options = ["--all-targets", "--", "-D", "warnings"];
    process::run(&mut cargo(&[&["clippy"][..], what, &options].concat()))
}

/// Compiles the fuzz targets, a workspace of their own. That their calls exist is a test too:
/// `conformance/tests/seeds.rs`, which the step `clippy` compiles.
fn fuzz_targets() -> Result<()> {
    process::run(&mut cargo(&[
        "check",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target-dir",
        "target",
    ]))
}

fn short_fuzz() -> Result<()> {
    let folder = root().join("fuzz/fuzz_targets");
    if !folder.is_dir() {
        println!("no fuzz targets");
        return Ok(());
    }
    if find_program("cargo-fuzz").is_none() {
        println!(
            "not run: cargo-fuzz is not installed\n  \
             help: cargo install --locked cargo-fuzz, and rustup toolchain install nightly"
        );
        return Ok(());
    }
    for file in tree::files(&folder, &[".rs"])? {
        let target = file
            .file_stem()
            .context("a fuzz target without a name")?
            .to_string_lossy()
            .into_owned();
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "fuzz", "run", &target, "--"]);
        command.arg(format!("-max_total_time={FUZZ_SECONDS_EACH}"));
        process::run(command.current_dir(root()))?;
    }
    Ok(())
}
