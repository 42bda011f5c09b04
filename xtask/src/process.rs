//! Running other programs, with errors that name the command and its output.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Pauses before the second and the third attempt of a step that uses the network.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// The crates and features of all tests. The default features of the program are those of its tests, so that one build
/// serves both.
pub(crate) const ALL_TESTS: [&str; 3] =
    ["--workspace", "--features", "abreast/otlp,abreast-store/postgres"];

/// The repository's root folder.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The folder that holds everything a task makes.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// A lock held while installing, so that two runs at once do not build the same folder.
pub(crate) fn lock() -> Result<File> {
    std::fs::create_dir_all(target()).context("cannot create the target folder")?;
    let path = target().join("xtask-tools.lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// `cargo` in the repository's root, the same one that runs this task.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    without_package(&mut command);
    command
}

/// Removes the variables that describe this package. Build scripts of dependencies read some, and
/// would run again whenever Cargo is started in another way.
pub(crate) fn without_package(command: &mut Command) {
    let is_of_package = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
        command.env_remove(name);
    }
}

/// Runs with the terminal passed through.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed with {status}", shown(command));
    }
    Ok(())
}

/// Runs quietly; on failure the error holds what the program wrote last.
pub(crate) fn run_quietly(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n    ");
        bail!("`{}` failed with {}\n    {last}", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Repeats a step that uses the network, three times at most.
pub(crate) fn with_retries(what: &str, mut step: impl FnMut() -> Result<()>) -> Result<()> {
    for pause in RETRY_PAUSES {
        match step() {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("{what}: {error:#}; trying again in {} s", pause.as_secs()),
        }
        thread::sleep(pause);
    }
    step().with_context(|| format!("{what}: three attempts failed"))
}

/// The path of a program, searched for in `PATH` and where system programs live.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Whether an environment variable is set to something that means yes.
pub(crate) fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_named_with_its_last_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no space left >&2; exit 3"]);
        let text = run_quietly(&mut command).unwrap_err().to_string();
        assert!(text.contains("no space left") && text.contains("sh -c"), "{text}");
    }

    #[test]
    fn programs_that_do_not_exist_are_not_found() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program-here").is_none());
    }
}
