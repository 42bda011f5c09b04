//! `abreast build`: a whole Source as files, for a web server or a bucket that only sends files.

use crate::config::database::{database_url, refusal};
use crate::config::{
    Descriptions, File, FolderOrigin, Origin, RdfOrigin, ServeConfig, SetFile, is_of_environment,
};
use crate::program::errors::UsageError;
use crate::program::progress::ProgressArgs;
use crate::program::terminal::{line, warning};
use crate::store::open_set::{open_folder, open_log, publish, set_urls};
use crate::store::stores::{Stores, Task};
use abreast_core::contents::ContentStore;
use abreast_core::{ChangeLog, Meter};
use abreast_folder::Folder;
use abreast_source::Representations;
use abreast_source::archive::ArchiveError;
use abreast_source::origin::rdf::{RdfFolder, RdfReport};
use abreast_source::origin::sparql::SparqlSet;
use abreast_source::publish::{Publisher, SourceUrls};
use abreast_source::static_site::{SiteError, SiteOptions, SiteReport, write_site};
use abreast_source::versions::collect_all;
use abreast_source::{
    Deletions, Held, IngestOptions, Private, ScanError, ScanOptions, ScanReport, scan,
};
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const HELP: &str = "\
Examples:
  abreast build ./papers --out ./site --base-url https://papers.example.org/ --copy
  abreast build /var/www/html/data --out /var/www/html --base-url https://example.org/ --resources-url https://example.org/data/
  abreast build --config abreast.toml --out ./site --base-url https://user.github.io/project/ --copy --gzip

Writes Source Description, Capability Lists, Resource and Change Lists with their indexes, documents of ResourceSync 0.1,
change feeds (EMM, IIIF Change Discovery), Sitemaps, robots.txt and pages for people. Run it again after changes: they
become entries of Change Lists and feeds, and only files whose bytes changed are written. Files of others are never
replaced. The state for the next build is in SITE/.abreast (do not publish that folder).

Exit codes: 0 done, 1 other, 2 usage, 3 some files could not be read or written, 7 deletions held, 10 locked, 13 disk or permission denied, 130 cancelled.";

/// A file changed more recently than this is read later, unless it is known that nobody has it
/// open.
const SETTLE: Duration = Duration::from_secs(1);
/// Time between two scans while files are being written.
const PAUSE: Duration = Duration::from_millis(100);
/// How long files that are being written are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of `build`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct BuildArgs {
    /// Folder to publish
    #[arg(required_unless_present = "config")]
    folder: Option<PathBuf>,
    /// Origin of the resources: files of the folder, or entities that its RDF files describe
    #[arg(long, value_name = "KIND", value_parser = ["folder", "rdf"])]
    origin: Option<String>,
    /// RDF only: replace shared and unattached blank nodes by IRIs with this prefix
    #[arg(long, value_name = "URL", value_parser = crate::config::check_base)]
    skolemize: Option<String>,
    /// RDF only: resolve relative IRIs in a file against this IRI and the file's path in the folder
    #[arg(long, value_name = "IRI")]
    base: Option<String>,
    /// Write the site to this folder; created if missing
    #[arg(long, value_name = "SITE")]
    out: PathBuf,
    /// Public URL of SITE, from which all published URLs are built [default: `base_url` of --config]
    #[arg(long, value_name = "URL", required_unless_present = "config", env = "ABREAST_BASE_URL", value_parser = crate::values::address::base_url)]
    base_url: Option<String>,
    /// Copy the resources into the site too; entity descriptions are always copied
    #[arg(long)]
    copy: bool,
    /// URL of FOLDER, if the resources are published already
    #[arg(long, value_name = "URL", conflicts_with_all = ["copy", "config"], value_parser = crate::values::address::base_url)]
    resources_url: Option<String>,
    /// Also write each document in gzip, as NAME.gz (nginx: `gzip_static on`)
    #[arg(long)]
    gzip: bool,
    /// Read a configuration file, for several sets and all settings of a set
    #[arg(long, value_name = "FILE", env = "ABREAST_CONFIG")]
    config: Option<PathBuf>,
    /// Keep the store in this folder [default: SITE/.abreast]
    #[arg(long, value_name = "DIR", env = "ABREAST_DATA")]
    data: Option<PathBuf>,
    /// Name of the set in URLs [default: from the folder's name]
    #[arg(long)]
    name: Option<String>,
    /// Title of the set on web pages [default: its name]
    #[arg(long)]
    title: Option<String>,
    /// Digests to compute: md5, sha-256 or both [default: md5]
    #[arg(long, value_name = "WHICH")]
    digests: Option<String>,
    /// Changes in one Change List, 1 to 50000 [default: 5000]
    #[arg(long, value_name = "N")]
    changes_per_list: Option<u32>,
    /// Follow relative symbolic links to published files within the folder
    #[arg(long)]
    follow_links: bool,
    /// Read every file, even if size, times and inode are unchanged
    #[arg(long)]
    reread: bool,
    /// Accept the deletion of all files missing or excluded, however many
    #[arg(long)]
    confirm_deletions: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    // Last: its heading would be that of all options after it.
    #[command(flatten)]
    rules: crate::config::rule_args::RuleArgs,
}

/// Runs `build`.
pub(crate) fn run(args: &BuildArgs) -> Result<ExitCode> {
    let config = config(args)?;
    let base_url = config.listen.base_url.clone().unwrap_or_default();
    let sets = config.sets.len();
    crate::program::open_files::raise_limit();
    let cancel = crate::program::signals::cancel_on_signal();
    let begun = Instant::now();
    let progress = args.progress.begin(args.quiet, args.json);
    let built = build(args, config, &cancel, &progress.meter());
    drop(progress);
    match built {
        Ok((scanned, report)) => {
            for problem in &report.problems {
                warning(problem);
            }
            if report.problem_count > report.problems.len() as u64 {
                warning(&format!(
                    "and {} more",
                    report.problem_count - report.problems.len() as u64
                ));
            }
            print_report(args, &base_url, sets, &scanned, &report, begun.elapsed());
            Ok(ExitCode::from(if report.problem_count > 0 { 3 } else { 0 }))
        }
        Err(error) => {
            let code = match error.downcast_ref::<SiteError>() {
                Some(SiteError::Locked(_)) => 10,
                Some(SiteError::Stopped) => 130,
                _ if matches!(error.downcast_ref(), Some(ScanError::Stopped)) => 130,
                _ if matches!(error.downcast_ref(), Some(ArchiveError::Stopped)) => 130,
                _ if error.is::<HeldDeletions>() => 7,
                _ => return Err(error),
            };
            crate::program::logging::failure(&error, code);
            Ok(ExitCode::from(code))
        }
    }
}

/// Results of the scans, of all sets together.
#[derive(Default)]
struct Scanned {
    files: u64,
    changes: u64,
    links: u64,
}

/// The guard holds the deletion of most of a set.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{}`: {held}; the site was not changed\n  help: if {}, run it again with --confirm-deletions",
    folder.display(),
    held.if_intended()
)]
struct HeldDeletions {
    folder: PathBuf,
    held: Held,
}

/// Folder and flags over the configuration file.
fn config(args: &BuildArgs) -> Result<ServeConfig> {
    let mut file = match &args.config {
        Some(path) => File::read_with_faults(path)?,
        None => File::default(),
    };
    let data = args.data.as_deref().or(file.data.as_deref());
    if data.is_some_and(|data| database_url(data).is_some()) {
        return Err(refusal(
            "a node serves the same documents, and `abreast sync` copies them to a folder",
        ));
    }
    if !args.copy && args.resources_url.is_none() && args.origin.is_none() {
        bail!(UsageError(
            "add --copy or --resources-url (help: --copy copies the resources into the site; --resources-url URL is where they \
             are published already)"
                .into()
        ));
    }
    if let Some(folder) = &args.folder {
        if args.config.as_ref().is_some_and(|path| is_of_environment(path)) {
            // The folder replaces the sets of a file from the environment.
            file.set.clear();
        }
        if !file.set.is_empty() {
            bail!(UsageError(
                "both a folder and `[[set]]` in the configuration (help: leave one of them out)"
                    .into()
            ));
        }
        file.set.push(SetFile {
            name: args.name.clone(),
            title: args.title.clone(),
            folder: folder.clone(),
            origin: args.origin.clone(),
            skolemize: args.skolemize.clone(),
            base: args.base.clone(),
            digests: args.digests.clone(),
            follow_links: args.follow_links.then_some(true),
            filter: args.rules.rules.clone(),
            changes_per_list: args.changes_per_list,
            ..SetFile::default()
        });
    }
    file.listen = None;
    let data = args.data.clone().unwrap_or_else(|| args.out.join(".abreast"));
    file.store_in(Some(&data));
    if args.base_url.is_some() {
        file.base_url.clone_from(&args.base_url);
        file.origins.forget("base_url");
    }
    let config = ServeConfig::check(file)?;
    if config.listen.base_url.is_none() {
        bail!(UsageError(
            "the public URL of the site is missing (help: give --base-url URL, or `base_url` in the configuration)"
                .into()
        ));
    }
    for set in &config.sets {
        match &set.origin {
            Origin::Folder(folder) => check_place(&args.out, &folder.path, args.copy)?,
            Origin::Rdf(RdfOrigin { descriptions: Descriptions::Folder(folder), .. }) => {
                check_place(&args.out, folder, false)?;
            }
            Origin::Rdf(RdfOrigin { descriptions: Descriptions::Endpoint(_), .. }) => {}
            Origin::Records | Origin::Rdf(_) => bail!(UsageError(format!(
                "the set `{}` has no folder: what comes over the API or by `import` is published by `abreast serve`",
                set.slug
            ))),
        }
    }
    Ok(config)
}

/// Refuses a site in the published folder, which would become part of the set, and a published
/// folder among the copies of a site, which would copy itself.
fn check_place(site: &Path, folder: &Path, copy: bool) -> Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let absolute = std::path::absolute(site)?;
    let existing =
        absolute.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let rest = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
    let resolved = std::fs::canonicalize(existing)?.join(rest);
    if let Ok(inside) = resolved.strip_prefix(folder)
        && inside.iter().all(|name| abreast_source::is_published_name(name.as_bytes()))
    {
        bail!(UsageError(format!(
            "`--out`: the site `{}` lies in the folder it publishes (help: choose a folder beside or above it)",
            site.display()
        )));
    }
    if copy && folder.starts_with(&resolved) {
        bail!(UsageError(format!(
            "`--copy`: the folder `{}` lies in the site, and needs no copy there (help: name its URL with --resources-url)",
            folder.display()
        )));
    }
    Ok(())
}

fn build(
    args: &BuildArgs,
    config: ServeConfig,
    cancel: &AtomicBool,
    meter: &Meter,
) -> Result<(Scanned, SiteReport)> {
    let is_new = !crate::store::served::has_store(&config.data)?;
    let mut stores = Stores::open(&config.data, Task::Build)?;
    let log: Arc<dyn ChangeLog> = Arc::new(stores.log()?);
    crate::store::served::record(&stores, &*log, &config.sets)?;
    let urls = SourceUrls::new(config.listen.base_url.as_deref().unwrap_or_default());
    let private = Private::new([urls.base().to_owned()]);
    let mut scanned = Scanned::default();
    let mut unreadable = SiteReport::default();
    let mut published = Vec::new();
    let mut contents = None;
    for set in config.sets {
        let id = open_log(&*log, &set)?;
        let origin = match &set.origin {
            Origin::Folder(origin) => origin,
            Origin::Rdf(origin) => {
                stores.keep();
                let contents = contents.get_or_insert(stores.contents()?);
                let log = (&log, private.clone());
                let (set_id, meter) = ((set.slug.as_str(), id), meter.clone());
                let report = read_rdf(args, &stores, log, set_id, origin, (contents, meter))?;
                scanned.files += report.entities;
                scanned.changes += report.created + report.updated + report.deleted;
                let representations = Representations::elsewhere()
                    .with_kept(crate::config::versions::reader(Some(contents)));
                let urls = set_urls(&urls, &set).in_files();
                published.push(publish(&stores, &set, id, urls, representations)?);
                continue;
            }
            // Refused before.
            Origin::Records => continue,
        };
        let folder = open_folder(origin, &private)?;
        let set_urls = urls.set(&set.slug).in_files();
        let set_urls = args
            .resources_url
            .as_ref()
            .map(|url| set_urls.clone().with_resources(url))
            .unwrap_or(set_urls);
        let links = set.links.policy(&set_urls.resources())?;
        // The next build uses the records of this scan.
        stores.keep();
        let report = {
            let ingest = IngestOptions { links, meter: meter.clone(), ..IngestOptions::default() };
            scan_set(&*log, id, &folder, origin, ingest, args, cancel)?
        };
        scanned.files += report.files;
        scanned.changes += report.ingest.recorded;
        scanned.links += report.links;
        unreadable.problem_count += report.ingest.problem_count;
        unreadable.problems.extend(report.ingest.problems);
        let representations = Representations::of_folder(folder, Arc::default());
        published.push(publish(&stores, &set, id, set_urls, representations)?);
    }
    let publisher = Publisher::new(Arc::clone(&log), urls, published, stores.path("documents"))
        .context("cannot make the folder for rendered documents")?
        .with_static_projections()
        .with_institution(config.institution)
        .with_meter(meter.clone());
    for set in publisher.sets() {
        abreast_source::archive::take(&*log, set, cancel)?;
    }
    let options = SiteOptions { copy: args.copy, gzip: args.gzip, reread: args.reread };
    let mut report = write_site(&publisher, &args.out, options, cancel)?;
    // Without the option, the store is created together with the site.
    if is_new && args.data.is_some() {
        let store = stores.data().display();
        report
            .notices
            .push(format!("the store {store} is new: the history of its sets begins now"));
    }
    report.problem_count += unreadable.problem_count;
    report.problems.extend(unreadable.problems);
    if let Some(contents) = contents {
        // Descriptions of before are needed no more.
        collect_all(log, contents, Vec::new())
            .map_err(|error| anyhow::anyhow!("cannot remove old descriptions: {error}"))?;
    }
    Ok((scanned, report))
}

/// Records what changed in the RDF files of a folder since the last build.
fn read_rdf(
    args: &BuildArgs,
    stores: &Stores,
    (log, private): (&Arc<dyn ChangeLog>, Private),
    (slug, set): (&str, abreast_core::SetId),
    origin: &RdfOrigin,
    (contents, meter): (&Arc<dyn ContentStore>, Meter),
) -> Result<RdfReport> {
    let mut options = origin.options(crate::store::rdf_files::temporary_folder(stores)?);
    options.confirm_deletions = args.confirm_deletions;
    options.meter = meter;
    let record = (!args.reread).then(|| options.record_of_files(slug));
    let (log, contents) = (Arc::clone(log), Arc::clone(contents));
    let read = match &origin.descriptions {
        Descriptions::Folder(path) => {
            RdfFolder { path: path.clone(), private, log, set, contents, options, record }.read()
        }
        Descriptions::Endpoint(sparql) => {
            SparqlSet::new((**sparql).clone(), log, set, contents, options).read()
        }
        // Refused before.
        Descriptions::Given => Ok(RdfReport::default()),
    };
    let report = read.map_err(crate::command::rdf::refused)?;
    report.warn();
    Ok(report)
}

/// Records what changed in a folder since the last build; files still being written are waited for
/// a little.
fn scan_set(
    log: &dyn ChangeLog,
    id: abreast_core::SetId,
    folder: &Folder,
    origin: &FolderOrigin,
    ingest: IngestOptions,
    args: &BuildArgs,
    cancel: &AtomicBool,
) -> Result<ScanReport> {
    let head = log.head(id)?;
    let importing = head.takes_base();
    let ingest =
        IngestOptions { digests: origin.digests, settle: SETTLE, first: head.is_first(), ..ingest };
    let deletions =
        if args.confirm_deletions { Deletions::Confirmed } else { Deletions::default() };
    let options =
        ScanOptions { ingest, read_all: args.reread, deletions, ..ScanOptions::default() };
    let until = Instant::now() + PATIENCE;
    let mut recorded = 0;
    let mut report = loop {
        let mut report = scan(folder, b"", log, id, &options, cancel)?;
        recorded += report.ingest.recorded;
        if let Some(held) = report.held {
            bail!(HeldDeletions { folder: origin.path.clone(), held });
        }
        // An import only adds: after an interruption, deletions are detected once it is complete.
        if report.ingest.deferred.is_empty() || Instant::now() >= until {
            // The files of the first scan are the base of the log, not changes.
            report.ingest.recorded = if importing { 0 } else { recorded };
            break report;
        }
        std::thread::sleep(PAUSE);
    };
    log.complete_import(id)?;
    if importing && report.gone > 0 {
        let report = scan(folder, b"", log, id, &options, cancel)?;
        if let Some(held) = report.held {
            bail!(HeldDeletions { folder: origin.path.clone(), held });
        }
    }
    for path in std::mem::take(&mut report.ingest.deferred) {
        report.ingest.problem_count += 1;
        let path = String::from_utf8_lossy(&path).escape_debug().to_string();
        report
            .ingest
            .problems
            .push(format!("`{path}` is being written, and left as it was (help: build again)"));
    }
    Ok(report)
}

fn print_report(
    args: &BuildArgs,
    base_url: &str,
    sets: usize,
    scanned: &Scanned,
    report: &SiteReport,
    took: Duration,
) {
    if args.json {
        let output = serde_json::json!({
            "type": "summary", "files": scanned.files, "changes": scanned.changes, "links_not_followed": scanned.links,
            "documents_written": report.written, "documents_unchanged": report.unchanged, "removed": report.removed,
            "copied": report.copied, "problems": report.problem_count, "notices": report.notices,
            "seconds": took.as_secs_f64(), "exit_code": if report.problem_count > 0 { 3 } else { 0 },
        });
        line(&output.to_string());
        return;
    }
    if args.quiet {
        return;
    }
    for notice in &report.notices {
        line(&format!("note: {notice}"));
    }
    if scanned.links > 0 {
        line(&format!("note: symbolic links that were not followed: {}", scanned.links));
    }
    line(&format!(
        "{}: {}, {}; documents: {} written, {} unchanged, {} removed; {} copied ({:.2} s)",
        args.out.display(),
        count(scanned.files, "file"),
        count(scanned.changes, "change"),
        report.written,
        report.unchanged,
        report.removed,
        count(report.copied, "resource"),
        took.as_secs_f64()
    ));
    // A folder's address ends in a slash: web servers redirect or refuse the one without.
    let url = base_url.trim_end_matches('/');
    let choice = if sets > 1 { " --all-sets" } else { "" };
    line(&format!("to mirror it once it is at its URL: abreast sync {url}/ FOLDER{choice}"));
}
