//! The password of a database: from `[database]`, or from where `psql` takes it.

use crate::config::access::Password;
use crate::config::database::DatabaseConfig;
use crate::program::small_file;
use abreast_store::{PostgresOptions, has_password, password_in_file};
use anyhow::{Context as _, Result};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shortest time between two reads of a file, and between two runs of a command.
const EVERY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// Most bytes of a file with passwords.
const FILE_MAX: u64 = 1 << 20;

/// Adds the password of a database to its options. If neither `[database]` nor the URL has one, it is
/// the value of the variable `PGPASSWORD`, or from the file of `PGPASSFILE` or `~/.pgpass`.
///
/// # Errors
/// The password cannot be read.
pub(super) fn add(options: PostgresOptions, config: &DatabaseConfig) -> Result<PostgresOptions> {
    const TASK: &str = "cannot read the password of the database";
    if let Some(password) = &config.password {
        let first = password.read().context(TASK)?;
        let every = EVERY[usize::from(matches!(password, Password::Command(_)))];
        let again = password.clone();
        let read = move || again.read_again().map_err(|error| format!("{error:#}"));
        return Ok(options.with_changing_password(first, every, read));
    }
    if has_password(&config.url) {
        return Ok(options);
    }
    if let Some(password) = std::env::var("PGPASSWORD").ok().filter(|text| !text.is_empty()) {
        return Ok(options.with_password(password));
    }
    let Some(file) = password_file() else { return Ok(options) };
    let url = config.url.clone();
    let Some(first) = in_file(&file, &url).context(TASK)? else { return Ok(options) };
    let read = move || match in_file(&file, &url) {
        Ok(Some(password)) => Ok(password),
        Ok(None) => Err(format!("`{}` has no line for the database", file.display())),
        Err(error) => Err(format!("{error:#}")),
    };
    Ok(options.with_changing_password(first, EVERY[0], read))
}

/// The file of passwords: that of the environment, or `.pgpass` if it exists.
fn password_file() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PGPASSFILE").filter(|name| !name.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let file = PathBuf::from(std::env::var_os("HOME")?).join(".pgpass");
    file.is_file().then_some(file)
}

/// The password in a file. As by `psql`, a file that others can read is not used.
fn in_file(file: &Path, url: &str) -> Result<Option<String>> {
    let mode = std::fs::metadata(file).map(|about| about.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        let shown = file.display();
        tracing::warn!("`{shown}` can be read by other users, and is not used: chmod 600 {shown}");
        return Ok(None);
    }
    Ok(password_in_file(url, &small_file::text(file, FILE_MAX)?))
}
