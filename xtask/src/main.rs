//! The project's tasks. Run `cargo xtask` for a list.
#![expect(clippy::print_stdout, reason = "a task runner talks to the person at the terminal")]

mod apt;
mod book;
mod check;
mod circles;
mod citations;
mod coverage;
mod dist;
mod faults;
mod generated;
mod layers;
mod libraries;
mod limits;
mod metrics;
mod pages;
mod process;
mod proofs;
mod python;
mod recording;
mod rooms;
mod scratch;
mod screenshots;
mod settings;
mod subjects;
mod test;
mod testdata;
mod tools;
mod tree;
mod wheel;
mod words;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
the project's tasks

usage: cargo xtask TASK

  test [CARGO TEST ARGUMENTS]  all tests, doc tests included, as CI runs them; prepares the
                               programs and collections they use; the last line is the sum
  check [--quick | --all]      everything a change must pass, fastest first; --quick leaves out the tests
  layers                       which crate may depend on which, who may do IO, rooms of a crate, circles of files
  circles [FOLDER…]            the circles of files of these crates, and what the files import from each other
  citations                    every [key §section] exists in docs/specs.toml
  coverage                     each sentence of the specifications with what shows that it is kept
  words [--record]             no registry host, machine path or house idiom; short test names; constructions
                               of prose within their limits or listed; --record writes that list
  pages                        pages of docs/ are in docs/SUMMARY.md, and relative links and anchors exist
  subjects [RANGE]             subjects of commits that no remote has, or of a range: length, topics, imperative
  generate                     rewrite the generated files
  faults [NAME…]               faults put back one at a time: the seeds until the simulation finds each
  proofs [--faults N] [--minutes N] [--seed N] [--former PROGRAM]
                               several nodes under many faults, until N faults or minutes; a seed repeats the plan
  screenshots                  pictures of the pages for people, in docs/images
  recording                    pictures of the sessions of the README, in docs/images, from a run of the program
  testdata                     prepare the real collections under target/testdata
  dist [--twice]               the files of a release, under target/dist/out: archive, Debian package, container
                               image, list of libraries, digests
  book                         the documentation as a site, under target/book; installs mdBook once
  wheel [--portable]           the package for Python, under target/wheels; --portable: two wheels, for older glibc and for musl
  bench [NAME…]                the benches, in release mode

environment
  CI=true                      a missing program or collection is a failure, not a skip
  ABREAST_NO_INSTALL=1         never install packages, use only what is there";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let (task, rest) = match arguments.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("help", arguments),
    };
    match task {
        // The last line of `test` is its sum, so nothing may be printed after it.
        "test" => return Ok(if test::run(rest) { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        "proofs" => {
            return Ok(if proofs::run(rest)? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        "check" => check::run(rest)?,
        "layers" => layers::run()?,
        "circles" => circles::print(rest)?,
        "citations" => citations::run()?,
        "coverage" => coverage::run()?,
        "words" => words::run(rest)?,
        "book" => book::run()?,
        "pages" => pages::check()?,
        "subjects" => subjects::run(rest)?,
        "generate" => generated::write()?,
        "faults" => faults::run(rest)?,
        "dist" => dist::run_task(rest)?,
        "screenshots" => screenshots::take()?,
        "recording" => recording::record()?,
        "wheel" => wheel::run_task(rest)?,
        "testdata" => testdata::run()?,
        "bench" => {
            let mut command = process::cargo(&["run", "--release", "-p", "abreast-bench", "--"]);
            command.args(rest);
            process::run(&mut command)?;
        }
        "help" | "--help" | "-h" => println!("{USAGE}"),
        unknown => bail!("there is no task `{unknown}`\n\n{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}
