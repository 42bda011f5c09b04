//! `abreast token`: who may use the API? Tokens are shown once, and kept as digests only.

use crate::api::tokens_path;
use crate::config::{File, Unusable};
use crate::data_folder::check_data;
use crate::terminal::{line, warning};
use abreast_core::{Clock as _, SystemClock};
use abreast_server::api::{Scope, Token, new_token, read_tokens, write_tokens};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast token create --name loader --scope write --set records --data /var/lib/abreast > loader.token
  abreast token list --config /etc/abreast.toml
  abreast token revoke loader --data /var/lib/abreast

A running server knows of a change within a second. The token itself is printed once and stored nowhere.
Exit codes: 0 done, 1 other, 2 usage.";

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and print it once
    #[command(after_help = HELP)]
    Create(CreateArgs),
    /// Tell which tokens there are
    #[command(after_help = HELP)]
    List(ListArgs),
    /// Make a token useless
    #[command(after_help = HELP)]
    Revoke(RevokeArgs),
}

/// Whose tokens.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Folder of the store
    #[arg(long, value_name = "DIR", env = "ABREAST_DATA", required_unless_present = "config")]
    data: Option<PathBuf>,
    /// Configuration file that names it
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    config: Option<PathBuf>,
}

impl StoreArgs {
    fn path(&self) -> Result<PathBuf> {
        let data = match (&self.config, &self.data) {
            (Some(config), _) => {
                let file = File::read(config)?;
                match (file.data, file.set.as_slice()) {
                    (Some(data), _) => data,
                    (None, [only]) if !only.is_records() => only.folder.join(".abreast"),
                    _ => bail!(Unusable(format!("`{}` names no `data`", config.display()))),
                }
            }
            (None, Some(data)) => {
                check_data(data)?;
                data.clone()
            }
            (None, None) => bail!(Unusable("whose tokens? (help: --data DIR or --config FILE)".into())),
        };
        Ok(tokens_path(&data))
    }
}

/// The scopes as the command line names them.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArg {
    /// Reading what is recorded
    Read,
    /// Recording changes, and reading
    Write,
    /// Everything
    Admin,
}

/// Options of `token create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What it is called, for people and logs
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it allows
    #[arg(long, value_enum)]
    scope: ScopeArg,
    /// For this set only; may be given several times [default: all sets]
    #[arg(long, value_name = "SET")]
    set: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Options of `token list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// One JSON object a line
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
    let path = args.store.path()?;
    let mut tokens = read(&path)?;
    let sound = (1..=100).contains(&args.name.len()) && !args.name.chars().any(char::is_control);
    if !sound || tokens.iter().any(|token| token.name == args.name) {
        let reason = if sound { "there is one of this name already" } else { "a name has 1 to 100 characters" };
        bail!(Unusable(format!("`--name`: {reason}")));
    }
    let scope = match args.scope {
        ScopeArg::Read => Scope::Read,
        ScopeArg::Write => Scope::Write,
        ScopeArg::Admin => Scope::Admin,
    };
    let created = SystemClock.now().to_string();
    let (secret, token) = new_token(&args.name, scope, args.set.clone(), &created).context("cannot make a token")?;
    tokens.push(token);
    if let (Some(_), Some(folder)) = (&args.store.config, path.parent()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the store's folder `{}`", folder.display()))?;
    }
    write_tokens(&path, &tokens).with_context(|| format!("cannot write `{}`", path.display()))?;
    line(&secret);
    warning("This is the token; it is shown once. Send it as `Authorization: Bearer TOKEN`.");
    Ok(())
}

fn read(path: &std::path::Path) -> Result<Vec<Token>> {
    read_tokens(path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn list(args: &ListArgs) -> Result<()> {
    for token in read(&args.store.path()?)? {
        if args.json {
            let told = serde_json::json!({
                "type": "token", "name": token.name, "scope": token.scope, "sets": token.sets, "created": token.created,
            });
            line(&told.to_string());
        } else {
            let scope = serde_json::to_string(&token.scope)?;
            let sets = if token.sets.is_empty() { "all sets".to_owned() } else { token.sets.join(", ") };
            line(&format!("{}  {}  {sets}  {}", token.name, scope.trim_matches('"'), token.created));
        }
    }
    Ok(())
}

fn revoke(args: &RevokeArgs) -> Result<()> {
    let path = args.store.path()?;
    let mut tokens = read(&path)?;
    let before = tokens.len();
    tokens.retain(|token| token.name != args.name);
    if tokens.len() == before {
        bail!(Unusable(format!("there is no token `{}` (help: abreast token list)", args.name)));
    }
    write_tokens(&path, &tokens).with_context(|| format!("cannot write `{}`", path.display()))?;
    line(&format!("`{}` is of no use any more", args.name));
    Ok(())
}
