//! Faults that are put back into the code, one at a time: the seeds that the simulation of copies needs to find each.
//!
//! A fault is a patch with a head: its name, then `readers:` that it can reach in the simulation, or the `test:` (with a
//! `cell:` of the table of adversities) that finds it instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{cargo, root, run_quietly};
use crate::tree;

const PATCHES: &str = "roles/destination/src/read/simulation/faults";
/// A worktree of the last commit that is built with the faults, and keeps what it has built.
const COPY: &str = "target/faults";
const READERS: [(&str, &str); 4] = [
    ("1.1", "lists::copies_are_right_after_any_adversity"),
    ("0.1", "sitemaps::copies_are_right_after_any_adversity"),
    ("SDShare", "atom::copies_are_right_after_any_adversity"),
    ("EMM", "activities::copies_of_feeds_are_right_after_any_adversity"),
];
/// Seeds of each attempt: most faults are found soon.
const SEEDS: [u32; 3] = [30, 200, 1_000];

struct Fault {
    patch: PathBuf,
    name: String,
    readers: Vec<String>,
    test: Option<String>,
    cell: Option<String>,
}

impl Fault {
    fn read(patch: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&patch)?;
        let head: Vec<&str> = text.lines().take_while(|line| !line.starts_with("diff ")).collect();
        let value = |key: &str| head.iter().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let readers = value("readers:").unwrap_or_default().split(", ").filter(|it| !it.is_empty());
        let readers: Vec<String> = readers.map(str::to_owned).collect();
        let is_known = |name: &String| READERS.iter().any(|reader| reader.0 == name);
        let test = value("test:").map(str::to_owned);
        let (name, cell) = (head.first().copied().unwrap_or_default().to_owned(), value("cell:"));
        ensure!(
            !name.is_empty()
                && readers.iter().all(is_known)
                && readers.is_empty() == test.is_some(),
            "{}: the head must have a name, then `readers:` or `test:`",
            tree::shown(&patch)
        );
        Ok(Self { patch, name, readers, test, cell: cell.map(str::to_owned) })
    }

    fn apply(&self, folder: &Path, options: &[&str]) -> Result<()> {
        let mut git = git(folder, &["apply"]);
        run_quietly(git.args(options).arg(&self.patch)).map(drop).with_context(|| {
            let patch = tree::shown(&self.patch);
            format!(
                "{patch} does not apply\n  help: make the change in the code, and replace the patch by `git diff -U2`"
            )
        })
    }

    /// The first seed that shows the fault to each reader.
    fn seeds(&self) -> Result<[Option<u32>; READERS.len()]> {
        let mut found = [None; READERS.len()];
        for count in SEEDS {
            let is_open = |at: &usize| {
                found[*at].is_none() && self.readers.iter().any(|name| name == READERS[*at].0)
            };
            let open: Vec<usize> = (0..READERS.len()).filter(is_open).collect();
            if open.is_empty() {
                break;
            }
            let tests = open.iter().map(|at| format!("read::simulation::{}", READERS[*at].1));
            let mut command = test(&["--lib", "--", "--exact"]);
            command.args(tests).env("ABREAST_TEST_SEEDS", count.to_string());
            let (_, text) = output(&mut command)?;
            for at in open {
                found[at] = first_seed(&text, READERS[at].1)?;
            }
        }
        Ok(found)
    }

    /// Whether another test finds the fault.
    fn is_found_by(&self, name: &str) -> Result<bool> {
        let mut command = test(&["--test", "it", name]);
        if let Some(cell) = &self.cell {
            command.env("ABREAST_TEST_CELL", cell);
        }
        let (is_right, text) = output(&mut command)?;
        Ok(!is_right && text.contains("test result: FAILED"))
    }
}

/// `cargo test` of the Destination in the copy.
fn test(arguments: &[&str]) -> Command {
    let mut command =
        cargo(&[&["test", "--quiet", "-p", "abreast-destination"], arguments].concat());
    command.current_dir(root().join(COPY)).env_remove("CARGO_TARGET_DIR");
    command
}

fn git(folder: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(folder);
    git
}

/// The code as it was committed last.
fn restore() -> Result<()> {
    let commit = run_quietly(&mut git(&root(), &["rev-parse", "HEAD"]))?;
    let copy = root().join(COPY);
    if !copy.join(".git").exists() {
        run_quietly(&mut git(&root(), &["worktree", "add", "--force", "--detach", COPY]))?;
    }
    run_quietly(&mut git(&copy, &["checkout", "--force", "--detach", commit.trim()])).map(drop)
}

fn output(command: &mut Command) -> Result<(bool, String)> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(text.contains("test result: "), "{}", String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), text))
}

/// The first seed in the message of a test that failed. They are printed in their order.
fn first_seed(text: &str, test: &str) -> Result<Option<u32>> {
    let head = format!("---- read::simulation::{test} stdout ----");
    let Some((_, message)) = text.split_once(&head) else { return Ok(None) };
    let message = message.split("\n---- ").next().unwrap_or_default();
    let digits = |text: &str| text.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok();
    let seed = message.split("ABREAST_TEST_SEED=").skip(1).find_map(digits);
    seed.map(Some).with_context(|| format!("{test} failed without a seed:\n{message}"))
}

fn all() -> Result<Vec<Fault>> {
    tree::files(&root().join(PATCHES), &[".patch"])?.into_iter().map(Fault::read).collect()
}

/// Every patch applies, so that the table can be made again.
pub(crate) fn check() -> Result<()> {
    all()?.iter().try_for_each(|fault| fault.apply(&root(), &["--check"]))
}

/// `cargo xtask faults [NAME…]`: the table for all faults, or for those whose files have such a name.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let is_wanted = |fault: &Fault| {
        let file = tree::shown(&fault.patch);
        names.is_empty() || names.iter().any(|name| file.contains(name.as_str()))
    };
    let (mut seeds, mut tests) = (String::new(), String::new());
    for fault in all()?.into_iter().filter(is_wanted) {
        eprintln!("{}", fault.name);
        restore()?;
        fault.apply(&root().join(COPY), &[])?;
        if let Some(name) = &fault.test {
            let shown = fault.cell.as_ref().unwrap_or(name);
            let is_found = fault.is_found_by(name)?;
            let note = if is_found { "" } else { " does **not** find it" };
            tests += &format!("| {} | `{shown}`{note} |\n", fault.name);
        } else {
            let found = fault.seeds()?;
            let cell = |(reader, seed): (&(&str, &str), &Option<u32>)| match seed {
                Some(seed) => seed.to_string(),
                None if fault.readers.iter().any(|name| name == reader.0) => "not".to_owned(),
                None => "–".to_owned(),
            };
            let cells: Vec<String> = READERS.iter().zip(&found).map(cell).collect();
            if found.iter().all(Option::is_none) {
                eprintln!("  not found by any reader");
            }
            seeds += &format!("| {} | {} |\n", fault.name, cells.join(" | "));
        }
    }
    if seeds.is_empty() && tests.is_empty() {
        bail!("there is no such fault in {PATCHES}");
    }
    let readers: Vec<&str> = READERS.iter().map(|reader| reader.0).collect();
    println!("\n| fault | {} |\n|---|---|---|---|---|\n{seeds}", readers.join(" | "));
    println!("| fault | found by |\n|---|---|\n{tests}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seed_of_each_test_is_found() {
        let text = "---- read::simulation::a::b stdout ----\n2 of 9 seeds fail\n  ABREAST_TEST_SEED=SEED cargo\n\
                    lost: ABREAST_TEST_SEED=12, x\nlost: ABREAST_TEST_SEED=14, x\n\
                    ---- read::simulation::c::d stdout ----\nABREAST_TEST_SEED=3\n";
        assert_eq!(first_seed(text, "a::b").unwrap(), Some(12));
        assert_eq!(first_seed(text, "c::d").unwrap(), Some(3));
        assert_eq!(first_seed(text, "e::f").unwrap(), None);
        assert!(first_seed("---- read::simulation::a::b stdout ----\npanicked", "a::b").is_err());
    }
}
