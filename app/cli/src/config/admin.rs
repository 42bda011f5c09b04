//! The address for operators: probes, metrics and status.

use crate::program::small_file;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::config::File;
use crate::program::errors::UsageError;

/// The address and its token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Probes and metrics")]
pub(crate) struct AdminArgs {
    /// Answer /livez, /readyz, /metrics and /status on this address; an address other than of this machine alone needs
    /// --admin-token-file
    #[arg(long, value_name = "HOST:PORT", env = "ABREAST_ADMIN_LISTEN")]
    pub(crate) admin_listen: Option<String>,
    /// Require the token in this file on that address (`Authorization: Bearer TOKEN`)
    #[arg(long, value_name = "FILE", env = "ABREAST_ADMIN_TOKEN_FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

/// The address for operators, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminConfig {
    pub(crate) address: SocketAddr,
    pub(crate) token_file: Option<PathBuf>,
}

impl AdminArgs {
    /// The options, else the keys of the file.
    pub(crate) fn over(&self, file: &mut File) {
        if self.admin_listen.is_some() {
            file.admin_listen.clone_from(&self.admin_listen);
            file.origins.forget("admin_listen");
        }
        if self.admin_token_file.is_some() {
            file.admin_token.clone_from(&self.admin_token_file);
            file.origins.forget("admin_token_file");
        }
    }

    /// The checked address, if there is one.
    ///
    /// # Errors
    /// It is not an address, or others reach it without a token.
    pub(crate) fn check(&self) -> Result<Option<AdminConfig>> {
        let mut problems = Vec::new();
        let found =
            check(self.admin_listen.as_deref(), self.admin_token_file.as_deref(), &mut problems);
        match problems.into_iter().next() {
            Some(problem) => bail!(UsageError(problem)),
            None => Ok(found),
        }
    }
}

/// Checks the keys `admin_listen` and `admin_token_file`.
pub(crate) fn check(
    listen: Option<&str>,
    token_file: Option<&Path>,
    problems: &mut Vec<String>,
) -> Option<AdminConfig> {
    let listen = listen.filter(|text| !text.is_empty())?;
    match crate::config::address_of(listen) {
        Err(reason) => {
            problems.push(reason.replacen("`listen`", "`admin_listen`", 1));
            None
        }
        Ok(address) if !address.ip().is_loopback() && token_file.is_none() => {
            problems.push(format!(
                "`admin_listen`: others reach `{listen}`, and there is no token (help: use an address of this machine alone, such as \
                 127.0.0.1:{}, or name a file with a token: --admin-token-file FILE)",
                address.port()
            ));
            None
        }
        Ok(address) => {
            if let Some(Err(error)) = token_file.map(token) {
                problems.push(format!("`admin_token_file`: {error:#}"));
            }
            Some(AdminConfig { address, token_file: token_file.map(Path::to_owned) })
        }
    }
}

impl AdminConfig {
    /// The token that requests need, if any.
    ///
    /// # Errors
    /// The file cannot be read, or its first line is empty.
    pub(crate) fn token(&self) -> Result<Option<String>> {
        self.token_file.as_deref().map(token).transpose()
    }
}

/// The token in the first line of a file.
///
/// # Errors
/// The file cannot be read, or its first line is empty.
pub(crate) fn token(path: &Path) -> Result<String> {
    let text = small_file::secret(path, small_file::SECRET_MAX)
        .context("cannot read the token of `--admin-token-file`")?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.is_empty() {
        bail!(UsageError(format!(
            "`--admin-token-file`: the first line of `{}` is empty: there is no token (help: write a random text into it, for example \
             with `openssl rand -hex 32`)",
            path.display()
        )));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_needs_a_token() {
        let checked = |listen: &str, token: Option<&str>| {
            let mut problems = Vec::new();
            let found = check(Some(listen), token.map(Path::new), &mut problems);
            (found.is_some(), problems.join("; "))
        };
        for local in ["127.0.0.1:0", "[::1]:9100"] {
            assert_eq!(checked(local, None), (true, String::new()));
        }
        for open in ["0.0.0.0:9100", "[::]:9100", "192.0.2.1:9100"] {
            assert!(checked(open, Some("token")).0);
            let (found, problem) = checked(open, None);
            assert!(!found && problem.contains("--admin-token-file"), "{problem}");
        }
        let (_, problem) = checked(":9100", None);
        assert!(problem.starts_with("`admin_listen`: `:9100` is not HOST:PORT"), "{problem}");
        assert!(check(None, None, &mut Vec::new()).is_none());
    }
}
