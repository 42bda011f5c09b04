//! Faults that are put back into the code, one at a time: the seeds that the simulation of copies needs to find each.
//!
//! A fault is a patch below its name, the `readers:` that it can reach in the simulation, and a `test:` that finds it too, with a
//! `cell:` if that is the table of adversities.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process::{cargo, root, run_quietly};
use crate::tree;

const PATCHES: &str = "roles/destination/src/run/simulation/faults";
/// A worktree of the last commit that is built with the faults, and keeps what it has built.
const COPY: &str = "target/faults";
const READERS: [(&str, &str); 5] = [
    ("1.1", "lists::copies_are_right_after_any_adversity"),
    (DUMPS, "dumps::copies_are_right_after_any_adversity"),
    ("0.1", "sitemaps::copies_are_right_after_any_adversity"),
    ("SDShare", "atom::copies_are_right_after_any_adversity"),
    ("EMM", "activities::copies_of_feeds_are_right_after_any_adversity"),
];
/// Dumps of 1.1 are reached by what reaches 1.1.
const DUMPS: &str = "dumps";
/// Seeds of each attempt: most faults are found soon.
const SEEDS: [u32; 3] = [30, 200, 1_000];

struct Fault {
    patch: PathBuf,
    head: Vec<String>,
}

impl Fault {
    fn all() -> Result<Vec<Self>> {
        let read = |patch: PathBuf| {
            let text = fs::read_to_string(&patch)?;
            let head = text.lines().take_while(|line| !line.starts_with("diff "));
            let head = head.map(str::to_owned).collect();
            Ok(Self { patch, head })
        };
        tree::files(&root().join(PATCHES), &[".patch"])?.into_iter().map(read).collect()
    }

    fn stated(&self, key: &str) -> Option<&str> {
        self.head.iter().find_map(|line| line.strip_prefix(key)).map(str::trim)
    }

    fn apply(&self, folder: &Path, options: &[&str]) -> Result<()> {
        let mut apply = git(folder, &[&["apply"], options].concat());
        run_quietly(apply.arg(&self.patch)).map(drop).with_context(|| {
            let patch = tree::shown(&self.patch);
            format!("{patch} does not apply\n  help: make the change in the code, and replace the patch by `git diff -U2`")
        })
    }

    /// The first seed that shows the fault to a reader, as a cell of the table.
    fn seed(&self, reader: &str, test: &str) -> Result<String> {
        let reader = if reader == DUMPS { "1.1" } else { reader };
        if !self.stated("readers:").is_some_and(|all| all.split(", ").any(|one| one == reader)) {
            return Ok("–".to_owned());
        }
        for count in SEEDS {
            let mut command = tests(&["--lib", test]);
            if let Some(text) = failed(command.env("ABREAST_TEST_SEEDS", count.to_string()))? {
                return first_seed(&text)
                    .with_context(|| format!("{test} failed otherwise:\n{text}"));
            }
        }
        Ok("none".to_owned())
    }

    /// Another test that finds it, as a cell of the table.
    fn test(&self) -> Result<String> {
        let (Some(test), cell) = (self.stated("test:"), self.stated("cell:")) else {
            return Ok(String::new());
        };
        let kind: &[&str] = if test.contains("::tests::") { &["--lib"] } else { &["--test", "it"] };
        let mut command = tests(&[kind, &[test]].concat());
        let is_found =
            failed(command.env("ABREAST_TEST_CELL", cell.unwrap_or_default()))?.is_some();
        let note = if is_found { "" } else { " does **not** find it" };
        Ok(format!("`{}`{note}", cell.unwrap_or(test)))
    }

    /// Its row of the table.
    fn row(&self) -> Result<String> {
        let seeds = READERS.iter().map(|(reader, test)| self.seed(reader, test));
        let mut row = format!("| {} |", self.head.first().map_or("", String::as_str));
        for cell in seeds.chain([self.test()]) {
            let _ = write!(row, " {} |", cell?);
        }
        Ok(row)
    }
}

/// `cargo test` of the Destination in the copy.
fn tests(arguments: &[&str]) -> Command {
    let mut command =
        cargo(&[&["test", "--quiet", "-p", "abreast-destination"], arguments].concat());
    command.current_dir(root().join(COPY)).env_remove("CARGO_TARGET_DIR");
    command
}

/// The output of tests that fail; `None` if all pass.
fn failed(command: &mut Command) -> Result<Option<String>> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let has_run = ["test result: ok. 0 passed", "test result: "].map(|it| text.contains(it));
    ensure!(has_run == [false, true], "no test ran\n{}", String::from_utf8_lossy(&output.stderr));
    Ok((!output.status.success()).then_some(text))
}

/// The first seed in the message of a test. They are printed in their order.
fn first_seed(text: &str) -> Option<String> {
    let digits = |text: &str| text.split(|it: char| !it.is_ascii_digit()).next().map(str::to_owned);
    text.split("ABREAST_TEST_SEED=").skip(1).filter_map(digits).find(|seed| !seed.is_empty())
}

fn git(folder: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(folder);
    git
}

/// Every patch applies, so that the table can be made again.
pub(crate) fn check() -> Result<()> {
    Fault::all()?.iter().try_for_each(|fault| fault.apply(&root(), &["--check"]))
}

/// `cargo xtask faults [NAME…]`: the table of all faults, or of those whose files have such a name.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let (root, copy) = (root(), root().join(COPY));
    let commit = run_quietly(&mut git(&root, &["rev-parse", "HEAD"]))?;
    if !copy.join(".git").exists() {
        run_quietly(&mut git(&root, &["worktree", "add", "--force", "--detach", COPY]))?;
    }
    let readers = READERS.map(|reader| reader.0).join(" | ");
    println!("| fault | {readers} | other test |\n|---|---|---|---|---|---|---|");
    for fault in Fault::all()? {
        let file = tree::shown(&fault.patch);
        if !names.is_empty() && !names.iter().any(|name| file.contains(name.as_str())) {
            continue;
        }
        run_quietly(&mut git(&copy, &["checkout", "--force", "--detach", commit.trim()]))?;
        fault.apply(&copy, &[])?;
        println!("{}", fault.row()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_seed_is_found() {
        let text = "2 of 9 seeds fail\n  ABREAST_TEST_SEED=SEED cargo test\nlost: ABREAST_TEST_SEED=12, x\n\
                    lost: ABREAST_TEST_SEED=14, x\n";
        assert_eq!(super::first_seed(text).as_deref(), Some("12"));
        assert_eq!(super::first_seed("a thread panicked"), None);
    }
}
