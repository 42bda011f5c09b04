//! The `abreast` program, as [`abreast::main_with`] runs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    abreast::main_with(std::env::args_os().collect())
}
