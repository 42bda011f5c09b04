//! `abreast init`: writes a configuration file with comments, checks it, and prints the next commands.

use crate::command::config_command::faults_of;
use crate::config::access::parse_contact;
use crate::config::{File, slug_of};
use crate::program::errors::UsageError;
use crate::program::terminal;
use crate::store::stores::as_owner;
use crate::values::address::{base_url, http_url};
use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;
use toml::Value;

const HELP: &str = "\
Examples:
  abreast init --folder /srv/papers --base-url https://papers.example.org/
  abreast init authorities.toml --rdf /srv/authorities --name authorities
  abreast init --records --name catalogue --data /var/lib/abreast
  abreast init mirror.toml --mirror https://papers.example.org/ --into /srv/mirrors/papers
  abreast init --folder papers --title \"Papers of the institute\" --institution \"Example Library\" --contact data@example.org

Without one of --folder, --rdf, --records and --mirror, the command asks on a terminal, except for values that options set. Enter accepts the default in brackets. It writes FILE, checks it as `abreast config check` does, and prints the next three commands.
Exit codes: 0 written, 1 other, 2 usage, or the file exists already, 13 disk or permission denied.";

/// Options of `init`.
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
#[command(group = clap::ArgGroup::new("kind").args(["folder", "rdf", "records", "mirror"]))]
pub(crate) struct InitArgs {
    /// File to write
    #[arg(default_value = "abreast.toml")]
    file: PathBuf,
    /// Publish the files of this folder
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Publish the entities that RDF files of this folder describe
    #[arg(long, value_name = "DIR")]
    rdf: Option<PathBuf>,
    /// Publish records that come through the API
    #[arg(long)]
    records: bool,
    /// Keep a copy of what this Source publishes
    #[arg(long, value_name = "URL", requires = "into")]
    mirror: Option<String>,
    /// Folder of the copy
    #[arg(long, value_name = "DIR", requires = "mirror")]
    into: Option<PathBuf>,
    /// Name of the set or the job [default: made from the name of the folder]
    #[arg(long)]
    name: Option<String>,
    /// Title of the set for people
    #[arg(long, conflicts_with = "mirror")]
    title: Option<String>,
    /// Licence of the set: an address or a name
    #[arg(long, conflicts_with = "mirror")]
    licence: Option<String>,
    /// Contact for the set and on all pages: a mail address, or the address of a page
    #[arg(long, conflicts_with = "mirror", value_parser = parse_contact)]
    contact: Option<String>,
    /// Name of the institution, at the top of each page
    #[arg(long, value_name = "NAME", conflicts_with = "mirror")]
    institution: Option<String>,
    /// URL of the institution's own site
    #[arg(long, value_name = "URL", requires = "institution", value_parser = http_url)]
    institution_url: Option<String>,
    /// Public URL of the site
    #[arg(long, value_name = "URL", conflicts_with = "mirror")]
    base_url: Option<String>,
    /// Address to listen on
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        conflicts_with = "mirror"
    )]
    listen: String,
    /// Folder of the store [default: the store in the folder, if there is one; else `abreast-data` next to FILE; for a file in /etc, /var/lib/abreast]
    #[arg(long, value_name = "DIR", conflicts_with = "mirror")]
    data: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
}

/// The purpose of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Folder,
    Rdf,
    Records,
    Mirror,
}

impl InitArgs {
    fn kind(&self) -> Option<Kind> {
        match self {
            Self { folder: Some(_), .. } => Some(Kind::Folder),
            Self { rdf: Some(_), .. } => Some(Kind::Rdf),
            Self { records: true, .. } => Some(Kind::Records),
            Self { mirror: Some(_), .. } => Some(Kind::Mirror),
            _ => None,
        }
    }

    /// Asks the questions that the options leave open.
    fn ask(&mut self) -> Result<Kind> {
        if !std::io::stdin().is_terminal() {
            bail!(UsageError(
                "no option selects what to publish or to copy (help: one of --folder DIR, --rdf DIR, --records, --mirror URL)"
                    .into()
            ));
        }
        let kind = loop {
            let words =
                "Publish a folder, entities in RDF, or records; or keep a copy of a Source?";
            let answer = question(words, "folder")?;
            match Kind::from_str(&answer, true) {
                Ok(kind) => break kind,
                Err(_) => terminal::warning("answer one of: folder, rdf, records, mirror"),
            }
        };
        match kind {
            Kind::Folder => self.folder = Some(asked_folder("Which folder?")?),
            Kind::Rdf => self.rdf = Some(asked_folder("Which folder has the RDF files?")?),
            Kind::Records => {
                self.records = true;
                if self.name.is_none() {
                    self.name = Some(question("Name of the set?", "records")?);
                }
            }
            Kind::Mirror => {
                self.mirror = Some(checked_question("URL of the Source?", "", http_url)?);
                self.into = Some(question("Folder of the copy?", "copy")?.into());
                return Ok(kind);
            }
        }
        self.ask_for_other_file()?;
        self.ask_for_description()?;
        Ok(kind)
    }

    /// Asks for another file while the present one would be published with the folder.
    fn ask_for_other_file(&mut self) -> Result<()> {
        while let Some(folder) = published_with(self, &absolute(&self.file)?)
            && let Some(parent) = folder.parent()
        {
            terminal::warning(&format!(
                "`{}` would be in the published folder, and be published with it",
                self.file.display()
            ));
            let beside = parent.join(self.file.file_name().unwrap_or("abreast.toml".as_ref()));
            self.file = question("File to write?", &beside.to_string_lossy())?.into();
        }
        Ok(())
    }

    /// Asks for the texts that people and harvesters read about the set, and for the address.
    fn ask_for_description(&mut self) -> Result<()> {
        if self.title.is_none() {
            self.title = Some(question("Title of the set?", &name_of(self))?);
        }
        if self.licence.is_none() {
            let words = "Licence, as an address or a name (empty: none)?";
            self.licence = Some(question(words, "")?).filter(|licence| !licence.is_empty());
        }
        if self.contact.is_none() {
            let words = "Contact, a mail address or the address of a page (empty: none)?";
            self.contact = optional_question(words, parse_contact)?;
        }
        if self.institution.is_none() {
            let name = question("Name of your institution (empty: none)?", "")?;
            self.institution = Some(name).filter(|name| !name.is_empty());
        }
        if self.institution.is_some() && self.institution_url.is_none() {
            let words = "URL of your institution's own site (empty: none)?";
            self.institution_url = optional_question(words, http_url)?;
        }
        if self.base_url.is_none() {
            let words = "Public URL of the site (empty: this machine only)?";
            self.base_url = optional_question(words, base_url)?;
        }
        Ok(())
    }
}

/// A folder that exists, by default the present one.
fn asked_folder(text: &str) -> Result<PathBuf> {
    let folder = checked_question(text, ".", |answer| {
        if Path::new(answer).is_dir() {
            Ok(answer.to_owned())
        } else {
            Err(format!("`{answer}` is not a folder"))
        }
    })?;
    Ok(folder.into())
}

/// Repeats a question until the answer has the right form; returns the checked answer.
fn checked_question(
    text: &str,
    default: &str,
    check: impl Fn(&str) -> Result<String, String>,
) -> Result<String> {
    loop {
        match check(&question(text, default)?) {
            Ok(answer) => break Ok(answer),
            Err(fault) => terminal::warning(&fault),
        }
    }
}

/// An answer of the right form, or nothing for an empty line.
fn optional_question(
    text: &str,
    check: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<String>> {
    let check_answer = |answer: &str| {
        if answer.is_empty() { Ok(String::new()) } else { check(answer) }
    };
    Ok(Some(checked_question(text, "", check_answer)?).filter(|answer| !answer.is_empty()))
}

/// The published folder that contains the file.
fn published_with(args: &InitArgs, file: &Path) -> Option<PathBuf> {
    let folder = [&args.folder, &args.rdf].into_iter().flatten().next()?;
    let folder = std::fs::canonicalize(folder).ok()?;
    let own = std::fs::canonicalize(file.parent()?).ok()?;
    own.starts_with(&folder).then_some(folder)
}

/// Refuses to replace a file without `--force`.
fn refuse_existing(args: &InitArgs) -> Result<()> {
    if args.file.exists() && !args.force {
        bail!(UsageError(format!(
            "`{}` exists (help: choose another file, or --force to replace it)",
            args.file.display()
        )));
    }
    Ok(())
}

/// The answer of a person, or the default for an empty line.
pub(crate) fn question(text: &str, default: &str) -> Result<String> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    terminal::line(&format!("{text}{shown}"));
    let mut answer = String::new();
    let length =
        std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    if length == 0 {
        bail!(UsageError("standard input ended before the last answer".into()));
    }
    let answer = answer.trim();
    Ok(if answer.is_empty() { default } else { answer }.to_owned())
}

/// Runs `init`.
pub(crate) fn run(args: &InitArgs) -> Result<ExitCode> {
    let mut args = args.clone();
    refuse_existing(&args)?;
    let kind = match args.kind() {
        Some(kind) => kind,
        None => args.ask()?,
    };
    refuse_existing(&args)?;
    let file = absolute(&args.file)?;
    if published_with(&args, &file).is_some() {
        bail!(UsageError(format!(
            "`{}` would be in the published folder, and be published with it (help: name a file in another folder, such \
             as `abreast init ../abreast.toml`)",
            args.file.display()
        )));
    }
    let text = match kind {
        Kind::Mirror => mirror(&args)?,
        _ => source(&args, kind, &file)?,
    };
    let former = std::fs::read(&file).ok();
    write(&file, text.as_bytes(), args.force)?;
    // A public API that writes needs a token, which cannot exist before the file names the store.
    let needs_token = kind == Kind::Records && args.base_url.is_some();
    let mut faults = faults_of(File::read_with_faults(&file)?)?;
    faults.retain(|fault| !(needs_token && fault.contains("`api.write`")));
    let shown = args.file.display();
    if !faults.is_empty() {
        for fault in faults {
            terminal::warning(&fault);
        }
        if let Some(former) = former {
            write(&file, &former, true)?;
            bail!(UsageError(format!("`{shown}` remains as it was")));
        }
        bail!(UsageError(format!("`{shown}` is written, and has to be corrected")));
    }
    terminal::line(&format!("wrote {shown}; next:"));
    // What root writes into the folder of another user is of no use to that user's programs.
    let written = match kind {
        Kind::Mirror => args.into.clone().unwrap_or_default(),
        _ => store_of(&args, &file),
    };
    let owner = as_owner(&written).unwrap_or_default();
    let name = name_of(&args);
    if needs_token {
        terminal::line(&format!(
            "  {owner}abreast token create --name loader --scope write --config {shown}"
        ));
    }
    let commands = if kind == Kind::Mirror {
        [
            format!("{owner}abreast sync --config {shown} {name} --dry-run"),
            format!("{owner}abreast sync --config {shown} {name}"),
            format!("{owner}abreast sync --config {shown} {name} --follow"),
        ]
    } else {
        let url = args.base_url.clone().unwrap_or_else(|| format!("http://{}/", args.listen));
        [
            format!("{owner}abreast serve --config {shown}"),
            format!("abreast validate {url}"),
            format!("abreast sync {url} COPY"),
        ]
    };
    for command in commands {
        terminal::line(&format!("  {command}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn name_of(args: &InitArgs) -> String {
    let place = [&args.folder, &args.rdf, &args.into].into_iter().find_map(Option::as_deref);
    let made = || place.map_or_else(|| "records".to_owned(), name_of_folder);
    args.name.clone().unwrap_or_else(made)
}

/// The name of a folder, also of `.`.
fn name_of_folder(folder: &Path) -> String {
    slug_of(&std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()))
}

/// A text or a path as TOML has it.
fn quoted(value: impl Into<String>) -> Value {
    Value::String(value.into())
}

fn path(value: &Path) -> Result<Value> {
    let path = absolute(value)?;
    let text = path.to_str().with_context(|| format!("`{}` is not UTF-8", path.display()))?;
    Ok(quoted(text))
}

/// The folder of the store.
fn store_of(args: &InitArgs, file: &Path) -> PathBuf {
    match &args.data {
        Some(data) => data.clone(),
        None if file.starts_with("/etc") => PathBuf::from("/var/lib/abreast"),
        None => match args.folder.as_ref().map(|folder| folder.join(".abreast")) {
            // The history of the folder.
            Some(used) if used.join("source.db").exists() => used,
            _ => file.with_file_name("abreast-data"),
        },
    }
}

/// A line with a setting, or with an example in a comment.
fn setting(key: &str, value: Option<&str>, example: &str) -> String {
    let sign = if value.is_some() { "" } else { "#" };
    format!("{sign}{key} = {}\n", quoted(value.unwrap_or(example)))
}

/// The table of the institution, in comments if no option has its name.
fn institution(args: &InitArgs) -> String {
    let name = args.institution.as_deref();
    let contact = args.contact.as_deref().filter(|_| name.is_some());
    format!(
        "\n# The institution that the pages for people show: docs/web.md.\n{}[institution]\n{}{}{}",
        if name.is_some() { "" } else { "#" },
        setting("name", name, "Example Library"),
        setting("url", args.institution_url.as_deref(), "https://library.example.org/"),
        setting("contact", contact, "data@library.example.org"),
    )
}

fn source(args: &InitArgs, kind: Kind, file: &Path) -> Result<String> {
    let data = store_of(args, file);
    let base = match &args.base_url {
        Some(base) => format!("base_url = {}", quoted(base)),
        None => "#base_url = \"https://data.example.org/\"".to_owned(),
    };
    let mut text = format!(
        "# Configuration of `abreast serve --config FILE`. All keys: docs/configuration.md.\n\
         # Check it after each change: `abreast config check FILE`.\n\n\
         # Address to listen on. A web server in front has the certificate and the public name: docs/deploying.md.\n\
         listen = {}\n\n\
         # Public URL of the site. Every URL in every document begins with it, and copies store these URLs.\n{base}\n\n\
         # Addresses of the web server in front, which reports the addresses of clients.\n\
         #trusted_proxies = [\"127.0.0.1\"]\n\n\
         # Folder of the store, which has the history of all sets: `abreast backup` copies it.\ndata = {}\n",
        quoted(&args.listen),
        path(&data)?,
    );
    text.push_str(&institution(args));
    if kind == Kind::Records {
        text.push_str(
            "\n# The API, which records changes: docs/api.md. `abreast token create` makes the tokens that clients need.\n\
             [api]\nwrite = true\n",
        );
    }
    let _ = write!(
        text,
        "\n# A set. Further sets are further tables `[[set]]`.\n[[set]]\n# Name of the set in its addresses.\nname = {}\n",
        quoted(name_of(args))
    );
    text.push_str(&setting("title", args.title.as_deref(), "Papers of the institute"));
    text.push_str("#description = \"All papers since 1991.\"\n");
    let licence = "https://creativecommons.org/publicdomain/zero/1.0/";
    text.push_str(&setting("licence", args.licence.as_deref(), licence));
    text.push_str(&setting("contact", args.contact.as_deref(), "data@example.org"));
    match (kind, &args.folder, &args.rdf) {
        (Kind::Rdf, _, Some(folder)) => {
            let _ = write!(
                text,
                "# The entities that RDF files of this folder describe: docs/rdf.md.\norigin = \"rdf\"\nfolder = {}\n\
                 # The beginning of the IRIs of the entities. Default: the address of the set.\n\
                 #namespace = \"https://id.example.org/\"\n",
                path(folder)?
            );
        }
        (Kind::Records, ..) => {
            text.push_str("# Records that come through the API.\norigin = \"records\"\n");
        }
        (_, Some(folder), _) => {
            let _ = write!(
                text,
                "# The files of this folder. Hidden files and temporary files of editors are not published.\nfolder = {}\n\
                 #exclude = [\"*.tmp\", \"/drafts/\"]\n",
                path(folder)?
            );
        }
        _ => {}
    }
    if kind != Kind::Records {
        text.push_str(
            "# Earlier versions to store: docs/versions.md.\n#versions = { count = 10 }\n\
             # All resources in packages, made each day: docs/dumps.md.\n#dumps = { every = \"1d\" }\n",
        );
    }
    Ok(text)
}

fn mirror(args: &InitArgs) -> Result<String> {
    let (Some(url), Some(into)) = (&args.mirror, &args.into) else {
        bail!(UsageError("--mirror URL needs --into DIR".into()))
    };
    Ok(format!(
        "# Jobs of `abreast sync --config FILE [JOB]`: copies of what Sources publish. A job has the options of `abreast sync`,\n\
         # with `_` in place of `-`. Check the file after each change: `abreast config check FILE`.\n\n\
         # A job. Further jobs are further tables `[[mirror]]`.\n[[mirror]]\nname = {}\n\
         # Any address of the Source.\nurl = {}\n# The folder of the copy.\nfolder = {}\n\
         # Copy only these files: docs/filters.md.\n#filter = [\"+ *.pdf\", \"- *\"]\n\
         # Stop if a run would delete more than this part of the copy.\n#max_delete = \"5%\"\n\
         # Bytes per second.\n#bwlimit = \"2M\"\n# Keep running, and poll at this interval if there are no notifications.\n\
         #follow = true\n#interval = \"5m\"\n",
        quoted(name_of(args)),
        quoted(url),
        path(into)?,
    ))
}

/// Writes the file as a whole or not at all.
fn write(file: &Path, text: &[u8], replaces: bool) -> Result<()> {
    let failed = || format!("cannot write `{}`", file.display());
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new();
    // As the umask allows, because the file contains no secrets.
    temporary.permissions(std::fs::Permissions::from_mode(0o666));
    let mut temporary = temporary.tempfile_in(folder).with_context(failed)?;
    temporary.write_all(text).with_context(failed)?;
    temporary.as_file().sync_all().with_context(failed)?;
    let placed = if replaces { temporary.persist(file) } else { temporary.persist_noclobber(file) };
    placed.map(drop).map_err(|error| error.error).with_context(failed)
}
