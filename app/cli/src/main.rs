//! The `abreast` program, as [`abreast::main_with`] runs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    abreast::main_with(&words)
}
