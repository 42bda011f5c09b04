//! Prints the table of rules, as `docs/validating.md` has it.
#![allow(clippy::print_stdout)]

fn main() {
    print!("{}", abreast_validator::rules_table());
}
