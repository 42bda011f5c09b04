//! Running all tests with everything they use, ending in one line with the totals.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process::{ALL_TESTS, cargo, is_set, root, target};
use crate::scratch::Scratch;
use crate::tools::Tools;
use crate::tree;

/// Where a test that cannot run states so, one line each; see CONTRIBUTING.md.
const SKIP_LOG: &str = "ABREAST_TEST_SKIP_LOG";

/// Tests that run at the same time; a variable of Rust's test harness.
const THREADS: &str = "RUST_TEST_THREADS";

/// Tests at the same time for each processor: the long ones mostly wait.
const TESTS_OF_A_PROCESSOR: usize = 2;

/// Sum over all test binaries.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Sum {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// How the time of a run divides, from what the test binaries print.
#[derive(Debug, Default, PartialEq, Clone, Copy)]
struct Times {
    /// Until the first test starts: the compiler.
    compiling: Option<Duration>,
    /// Of the test binaries.
    tests: Duration,
    binaries: usize,
    /// Of the examples in the documentation, with their compilation.
    examples: Duration,
}

/// `cargo xtask test`: true when nothing failed. Prints the sum as its last line in every case.
pub(crate) fn run(arguments: &[String]) -> bool {
    run_with(arguments, &[])
}

/// As [`run`], with these variables in the environment of the tests.
pub(crate) fn run_with(arguments: &[String], settings: &[(&str, String)]) -> bool {
    let mut sum = Sum::default();
    let outcome = prepare_and_run(arguments, settings, &mut sum);
    if let Err(error) = &outcome {
        println!("error: {error:#}");
        sum.failed += 1;
    }
    println!("{}", sum.line());
    sum.failed == 0
}

fn prepare_and_run(arguments: &[String], settings: &[(&str, String)], sum: &mut Sum) -> Result<()> {
    let tools = Tools::prepare()?;
    for (variable, path) in &tools.found {
        println!("{variable}={}", path.display());
    }
    let skip_log = target().join("test-skips.log");
    fs::write(&skip_log, "").with_context(|| format!("cannot write {}", skip_log.display()))?;

    run_tests(arguments, settings, (&tools, &skip_log), sum)?;

    let skips = fs::read_to_string(&skip_log).unwrap_or_default();
    for skip in skips.lines() {
        println!("skipped: {skip}");
        sum.skip();
    }
    report_missing(&tools, sum)
}

/// Runs `cargo test` with the arguments, or all tests when there are none, and adds its results.
fn run_tests(
    arguments: &[String],
    settings: &[(&str, String)],
    (tools, skip_log): (&Tools, &Path),
    total: &mut Sum,
) -> Result<()> {
    let mut command = cargo(&["test", "--no-fail-fast"]);
    if arguments.is_empty() {
        command.args(ALL_TESTS);
    }
    command
        .args(arguments)
        .envs(tools.found.iter().map(|(variable, path)| (variable, path)))
        .envs(settings.iter().map(|(variable, value)| (variable, value)))
        .env(SKIP_LOG, skip_log);
    let scratch = Scratch::in_memory();
    if let Some(scratch) = &scratch {
        command.env("TMPDIR", scratch.path());
    }
    if std::env::var_os(THREADS).is_none() {
        command.env(THREADS, threads().to_string());
    }
    for variable in tools.missing.iter().flat_map(|missing| &missing.variables) {
        command.env_remove(variable);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start `cargo test`")?;
    let output = child.stdout.take().context("`cargo test` has no output")?;
    let (mut sum, times) = stream(output, &mut io::stdout())?;
    println!("{}", times.line());
    let status = child.wait().context("while waiting for `cargo test`")?;
    if !status.success() && sum.failed == 0 {
        println!(
            "\n`cargo test` ended with {status} and no test failed: a build or a test process broke off"
        );
        sum.failed = 1;
    }
    total.add(sum);
    Ok(())
}

fn threads() -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.saturating_mul(TESTS_OF_A_PROCESSOR)
}

/// Passes lines through and adds up the results of the test binaries.
fn stream(output: impl Read, terminal: &mut impl Write) -> Result<(Sum, Times)> {
    let mut sum = Sum::default();
    let mut times = Times::default();
    let start = Instant::now();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("while reading what `cargo test` prints")?;
        let line = String::from_utf8_lossy(&line);
        writeln!(terminal, "{line}").context("while passing on what `cargo test` prints")?;
        sum.add_line(&line);
        times.add_line(&line, start);
    }
    Ok((sum, times))
}

/// States what is missing and which test files use it; in CI that is a failure.
fn report_missing(tools: &Tools, sum: &mut Sum) -> Result<()> {
    for missing in &tools.missing {
        println!("\nmissing: {}\n  {}", missing.what, missing.reason);
        let files = files_naming(&missing.variables)?;
        if files.is_empty() {
            println!("  no test uses it yet");
        }
        for file in files {
            println!("  not run, or not in full: {file}");
        }
        if is_set("CI") {
            println!("  counted as a failure, because CI is set");
            sum.failed += 1;
        }
    }
    Ok(())
}

fn files_naming(variables: &[&str]) -> Result<Vec<String>> {
    let own = Path::new("xtask");
    let mut found = Vec::new();
    for file in tree::files(&root(), &[".rs"])? {
        let path = tree::shown(&file);
        if !Path::new(&path).starts_with(own) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if variables.iter().any(|variable| text.contains(variable)) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Adds `test result: ok. 3 passed; 0 failed; 1 ignored; …`; other lines count nothing.
    fn add_line(&mut self, line: &str) {
        let Some((_, counts)) =
            line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let (Some(Ok(number)), Some(word)) =
                (words.next().map(str::parse::<usize>), words.next())
            else {
                continue;
            };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// A test that only stated why it cannot run was counted as passed.
    fn skip(&mut self) {
        self.passed = self.passed.saturating_sub(1);
        self.skipped += 1;
    }

    fn line(self) -> String {
        let Self { passed, failed, skipped } = self;
        let line = format!("{passed} passed, {failed} failed");
        if skipped == 0 { line } else { format!("{line}, {skipped} skipped") }
    }
}

impl Times {
    /// Adds `running 3 tests`, `test result: … finished in 0.10s` and `all doctests ran in 3.00s; …`.
    fn add_line(&mut self, line: &str, start: Instant) {
        if line.starts_with("running ") && self.compiling.is_none() {
            self.compiling = Some(start.elapsed());
        } else if let Some(took) = seconds_after(line, "test result: ", "finished in ") {
            self.tests += took;
            self.binaries += 1;
        } else if let Some(took) = seconds_after(line, "all doctests ", "ran in ") {
            self.examples += took;
        }
    }

    fn line(self) -> String {
        format!(
            "time: {} s until the first test, {} s in {} test binaries, {} s for examples in the documentation",
            self.compiling.unwrap_or_default().as_secs(),
            self.tests.as_secs(),
            self.binaries,
            self.examples.as_secs(),
        )
    }
}

fn seconds_after(line: &str, start: &str, before: &str) -> Option<Duration> {
    let (_, rest) = line.strip_prefix(start)?.split_once(before)?;
    let (seconds, _) = rest.split_once('s')?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_binaries_and_examples_are_added() {
        let output = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 12.10s\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.00s\n\
            all doctests ran in 3.00s; merged doctests compilation took 2.98s\n";
        let (_, times) = stream(output.as_bytes(), &mut io::sink()).unwrap();
        assert!(times.line().ends_with(
            "s until the first test, 13 s in 2 test binaries, 3 s for examples in the documentation"
        ));
    }

    #[test]
    fn results_of_all_binaries_are_added() {
        let output = "running 3 tests\n\
            test a ... ok\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s\n\
            \n\
            test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.00s\n";
        let (sum, _) = stream(output.as_bytes(), &mut io::sink()).unwrap();
        assert_eq!(sum, Sum { passed: 7, failed: 2, skipped: 1 });
        assert_eq!(sum.line(), "7 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn the_sum_names_skips_only_when_there_are_some() {
        assert_eq!(Sum { passed: 5, failed: 0, skipped: 0 }.line(), "5 passed, 0 failed");
    }

    #[test]
    fn skipped_test_is_not_counted_as_passed() {
        let mut sum = Sum { passed: 5, failed: 0, skipped: 0 };
        sum.skip();
        assert_eq!(sum.line(), "4 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn output_that_is_not_utf8_is_passed_on() {
        let (sum, _) = stream(
            &b"\xff\xfe\ntest result: ok. 1 passed; 0 failed; 0 ignored\n"[..],
            &mut io::sink(),
        )
        .unwrap();
        assert_eq!(sum.passed, 1);
    }
}
