//! `abreast token`: manages API tokens. A token is shown once; only its digest is stored.

use crate::config::File;
use crate::config::database::{DatabaseConfig, THROUGH_A_SERVER, database_url, refusal};
use crate::program::errors::UsageError;
use crate::program::terminal::{line, warning};
use crate::store::data_folder::check_data;
use crate::store::database::Database;
use crate::store::log_access::unknown_set;
use crate::store::stores::token_place;
use abreast_core::{Clock as _, SystemClock};
use abreast_server::api::{Scope, Token, TokenPlace, new_token, tokens_path};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast token create --name loader --scope write --set records --data /var/lib/abreast > loader.token
  abreast token create --name loader --scope write --config /etc/abreast.toml > loader.token
  abreast token list --config /etc/abreast.toml
  abreast token revoke loader --data /var/lib/abreast

--config finds the store by `data` in the file; the sets of --set must be in the file. --data is the folder of the store, or the
URL of a database.
A running server applies a change within a second. The token itself is printed once and stored nowhere.
Exit codes: 0 done, 1 other, 2 usage, 5 the database is out of reach, 6 no secure connection to it, 12 it refuses the user,
13 disk or permission denied.";

/// Commands for tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token, and print it once
    #[command(after_help = HELP)]
    Create(CreateArgs),
    /// List the tokens
    #[command(after_help = HELP)]
    List(ListArgs),
    /// Revoke a token
    #[command(after_help = HELP)]
    Revoke(RevokeArgs),
}

/// Whose tokens.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Folder of the store, or the URL of a PostgreSQL database
    #[arg(
        long,
        value_name = "DIR|URL",
        env = "ABREAST_DATA",
        hide_env_values = true,
        required_unless_present = "config"
    )]
    data: Option<PathBuf>,
    /// Configuration file that names the store
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    config: Option<PathBuf>,
}

impl StoreArgs {
    /// The file of the configuration, if one is named.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The place of the tokens, with its name for errors.
    fn place(&self) -> Result<(TokenPlace, String)> {
        if let Some(database) = self.database()? {
            let shown = format!("the tokens in {}", database.shown());
            return Ok((token_place(Path::new(""), Some(&Database::connect(&database)?)), shown));
        }
        let folder = self.folder()?;
        let place = token_place(&folder, None);
        Ok((place, format!("`{}`", tokens_path(&folder).display())))
    }

    /// The database with the store, if it is in one.
    pub(crate) fn database(&self) -> Result<Option<DatabaseConfig>> {
        match (&self.config, &self.data) {
            (Some(config), _) => DatabaseConfig::of_file(&File::read(config)?),
            (None, Some(data)) => Ok(database_url(data).map(DatabaseConfig::of_url)),
            (None, None) => Ok(None),
        }
    }

    /// The folder of the store.
    ///
    /// # Errors
    /// The configuration cannot be read, or does not name it.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        Ok(match (&self.config, &self.data) {
            (Some(config), _) => {
                let file = File::read(config)?;
                if !file.is_in_folder() {
                    return Err(refusal(THROUGH_A_SERVER));
                }
                file.store_folder()
                    .ok_or_else(|| UsageError(format!("`{}` names no `data`", config.display())))?
            }
            (None, Some(data)) => {
                check_data(data)?;
                data.clone()
            }
            (None, None) => {
                bail!(UsageError("which store? (help: --data DIR or --config FILE)".into()))
            }
        })
    }

    /// Refuses sets that are neither in the configuration nor in the store. A store that does not exist
    /// yet has no sets.
    fn check_sets(&self, sets: &[String]) -> Result<()> {
        if self.config.is_none() && self.database()?.is_some() {
            return Ok(());
        }
        let (place, known) = match (&self.config, &self.data) {
            (Some(config), _) => (
                format!("the configuration `{}`", config.display()),
                File::read(config)?.set_names(),
            ),
            (None, Some(data)) => {
                (format!("the store `{}`", data.display()), crate::store::served::known_sets(data))
            }
            (None, None) => return Ok(()),
        };
        if known.is_empty() && self.config.is_none() {
            return Ok(());
        }
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        match sets.iter().find(|set| !known.contains(set)) {
            Some(unknown) => Err(unknown_set(unknown, &place, &names)),
            None => Ok(()),
        }
    }
}

/// The scopes of tokens, as values of an option.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArg {
    /// Read records
    Read,
    /// Record changes, and read
    Write,
    /// Everything
    Admin,
}

/// Options of `token create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Name of the token, for people and logs
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Scope of the token
    #[arg(long, value_enum)]
    scope: ScopeArg,
    /// Restrict to this set; repeatable [default: all sets]
    #[arg(long, value_name = "SET")]
    set: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Options of `token list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Options of `token revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    store: StoreArgs,
}

/// Runs `token`.
pub(crate) fn run(command: &TokenCommand) -> Result<ExitCode> {
    match command {
        TokenCommand::Create(args) => create(args)?,
        TokenCommand::List(args) => list(args)?,
        TokenCommand::Revoke(args) => revoke(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn create(args: &CreateArgs) -> Result<()> {
    let place = args.store.place()?;
    if !(1..=100).contains(&args.name.len()) || args.name.chars().any(char::is_control) {
        bail!(UsageError("`--name`: a name has 1 to 100 characters".to_owned()));
    }
    args.store.check_sets(&args.set)?;
    let scope = match args.scope {
        ScopeArg::Read => Scope::Read,
        ScopeArg::Write => Scope::Write,
        ScopeArg::Admin => Scope::Admin,
    };
    let created = SystemClock.now().to_string();
    let (secret, token) =
        new_token(&args.name, scope, args.set.clone(), &created).context("cannot make a token")?;
    if let (Some(_), (TokenPlace::File(path), _)) = (&args.store.config, &place)
        && let Some(folder) = path.parent()
    {
        crate::program::there::make_folder(folder)
            .with_context(|| format!("cannot make the store's folder `{}`", folder.display()))?;
    }
    change(&place, |tokens| {
        if tokens.iter().any(|token| token.name == args.name) {
            bail!(UsageError(format!(
                "`--name`: a token named `{}` exists (help: revoke it, or choose another name)",
                args.name
            )));
        }
        tokens.push(token.clone());
        Ok(())
    })?;
    line(&secret);
    warning("This is the token; it is shown once. Send it as `Authorization: Bearer TOKEN`.");
    Ok(())
}

/// Changes the tokens, one process after the other.
fn change(
    (place, shown): &(TokenPlace, String),
    change: impl Fn(&mut Vec<Token>) -> Result<()>,
) -> Result<()> {
    place.change(change).or_else(|error: anyhow::Error| {
        if error.is::<UsageError>() {
            return Err(error);
        }
        Err(error).with_context(|| format!("cannot change {shown}"))
    })
}

fn list(args: &ListArgs) -> Result<()> {
    let (place, shown) = args.store.place()?;
    for token in place.read().with_context(|| format!("cannot read {shown}"))? {
        if args.json {
            let told = serde_json::json!({
                "type": "token", "name": token.name, "scope": token.scope, "sets": token.sets, "created": token.created,
            });
            line(&told.to_string());
        } else {
            let scope = serde_json::to_string(&token.scope)?;
            let sets =
                if token.sets.is_empty() { "all sets".to_owned() } else { token.sets.join(", ") };
            line(&format!(
                "{}  {}  {sets}  {}",
                token.name,
                scope.trim_matches('"'),
                token.created
            ));
        }
    }
    Ok(())
}

fn revoke(args: &RevokeArgs) -> Result<()> {
    change(&args.store.place()?, |tokens| {
        let before = tokens.len();
        tokens.retain(|token| token.name != args.name);
        if tokens.len() == before {
            let text = format!("there is no token `{}` (help: abreast token list)", args.name);
            bail!(UsageError(text));
        }
        Ok(())
    })?;
    line(&format!("revoked `{}`", args.name));
    Ok(())
}
