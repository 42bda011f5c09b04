//! What helps in a shell: completions and manual pages, made from the same definitions as `--help`.

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use std::path::PathBuf;
use std::process::ExitCode;

const COMPLETIONS_HELP: &str = "\
Examples:
  abreast completions bash > ~/.local/share/bash-completion/completions/abreast
  abreast completions zsh > ~/.zfunc/_abreast
  abreast completions fish > ~/.config/fish/completions/abreast.fish";

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

const MAN_HELP: &str = "\
Examples:
  abreast man | man -l -
  abreast man --dir /usr/local/share/man/man1";

/// Options of `man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManArgs {
    /// Write a page for the program and one for each command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs `completions`.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "abreast", &mut script);
    crate::program::terminal::page(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}

/// Runs `man`.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<ExitCode> {
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        clap_mangen::generate_to(command, dir)
            .with_context(|| format!("cannot write manual pages into `{}`", dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).context("cannot make the manual page")?;
    crate::program::terminal::page(String::from_utf8_lossy(&page).trim_end());
    Ok(ExitCode::SUCCESS)
}
