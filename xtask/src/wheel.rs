//! `cargo xtask wheel`: the package for Python, as a wheel in `target/wheels/`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{ALL_TESTS, cargo, find_program, root, run_quietly, target, without_package};
use crate::python;

/// zig with the C libraries of many systems, as a package of Python: 411 MB, so only a portable wheel installs it.
const ZIG: &str = "ziglang==0.17.1";

/// Targets of portable wheels, with the oldest C libraries on which they run: glibc 2.17, and musl 1.2.
const PORTABLE: [(&str, &str); 2] =
    [("x86_64-unknown-linux-gnu", "manylinux2014"), ("x86_64-unknown-linux-musl", "musllinux_1_2")];

/// Builds the wheel of a release, and prints its path. With `--portable`, builds a wheel that runs on older Linux
/// distributions too, and one for distributions with musl.
pub(crate) fn run_task(arguments: &[String]) -> Result<()> {
    let folder = target().join("wheels");
    match arguments {
        [] => {
            empty(&folder)?;
            println!("{}", build_release(&folder, &[])?.display());
        }
        [flag] if flag == "--portable" => {
            let bin = python::environment()?;
            python::install(&bin, "installing zig", &[ZIG])?;
            empty(&folder)?;
            for (triple, compatibility) in PORTABLE {
                let options = ["--zig", "--target", triple, "--compatibility", compatibility];
                println!("{}", build_release(&folder, &options)?.display());
            }
        }
        _ => bail!("`cargo xtask wheel` has one option, `--portable`"),
    }
    Ok(())
}

fn build_release(folder: &Path, options: &[&str]) -> Result<PathBuf> {
    let bin = python::environment()?;
    let mut command = maturin(&bin, "release", folder);
    // maturin finds zig as a package of the first `python3`.
    command.args(options).env("PATH", path_with(&bin)?);
    run(&mut command, folder)
}

/// Builds the wheel of the tests, with the crates and features of the other tests: otherwise most crates would be
/// compiled twice, for this wheel and for the tests.
pub(crate) fn build_for_tests(folder: &Path) -> Result<PathBuf> {
    let bin = python::environment()?;
    let programs = target().join("cargo-of-wheel");
    fs::create_dir_all(&programs).context("cannot make the folder of the compiler")?;
    let program = programs.join("cargo");
    // A name without folder would be this program again.
    let real = PathBuf::from(cargo(&[]).get_program());
    let real = find_program(&real.to_string_lossy()).unwrap_or(real);
    let features = ALL_TESTS.join(" ");
    // maturin builds one package, and reads from the messages of cargo where the library is. One test, of any crate,
    // selects the features that the crates have for tests.
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = rustc ] || exec '{real}' \"$@\"\nexec '{real}' build {features} --lib --test documents \
         --quiet --locked --message-format json-render-diagnostics\n",
        real = real.display()
    );
    fs::write(&program, script)
        .and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", program.display()))?;
    empty(folder)?;
    run(maturin(&bin, "dev", folder).env("PATH", path_with(&programs)?), folder)
}

/// The search path with another folder before it.
fn path_with(first: &Path) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(first.to_owned()).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(folders)?)
}

/// Removes the wheels of earlier builds.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The command that builds in a profile of cargo, with the wheel as a new file of `folder`.
fn maturin(bin: &Path, profile: &str, folder: &Path) -> Command {
    let mut command = Command::new(bin.join("maturin"));
    command.args(["build", "--quiet", "--locked", "--profile", profile, "--out"]).arg(folder);
    command.arg("--interpreter").arg(bin.join("python"));
    command.arg("--manifest-path").arg(root().join("app/python/Cargo.toml"));
    without_package(&mut command);
    command.env("CARGO_TARGET_DIR", target());
    command
}

/// Runs the build, and returns the path of the wheel that it adds to the folder.
fn run(command: &mut Command, folder: &Path) -> Result<PathBuf> {
    let before = wheels(folder)?;
    run_quietly(command).context("cannot build the package for Python")?;
    let mut after = wheels(folder)?.into_iter();
    after
        .find(|path| !before.contains(path))
        .context("maturin ended without an error, but there is no wheel")
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(files.filter(|path| path.extension() == Some(OsStr::new("whl"))).collect())
}
