//! `abreast check`: checks stored data for damage. Read-only, and safe while a server is running.

use crate::api::tokens_path;
use crate::backup_check::check_backup;
use crate::backup_manifest::{backups_in, is_backup};
use crate::check_contents::{ContentsCheck, Damaged};
use crate::lock_holder::holder_of;
use crate::logging;
use crate::push::notified_path;
use crate::state_folders::StateFolders;
use crate::terminal::line;
use abreast_core::{Finding, Severity};
use abreast_destination::check::check_copy;
use abreast_folder::read_sealed;
use abreast_server::api::check_tokens;
use abreast_source::archive::check_archives;
use abreast_source::notify::check_notified;
use abreast_source::projection::sdshare::check_snapshots;
use abreast_store::integrity::{Findings, check_hub, check_log};
use abreast_webtypes::count;
use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;
use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

const HELP: &str = "\
Examples:
  abreast check /var/lib/abreast
  abreast check ./papers --read-data-subset 10%
  abreast check warc:./packed --read-data --json

DIR is the folder of a Source's store, a published folder with its store in .abreast, a copy made by `abreast sync`, the
folder of its state, or the folder of the copies of all sets (`--all-sets`). The check is read-only; a server may be running.
docs/maintenance.md explains each finding.

Exit codes: 0 no damage, 1 damage found, 2 usage, 13 cannot read, 130 cancelled.";

/// Options of `check`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckArgs {
    /// Folder of a store, of a copy, or of backups
    dir: String,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print findings as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Selection of the contents to read.
#[derive(Debug, Default, Args)]
pub(crate) struct DataArgs {
    /// Read all contents, files and packages, and compare digests
    #[arg(long, conflicts_with = "read_data_subset")]
    read_data: bool,
    /// Read a random part of them, such as 10%
    #[arg(long, value_name = "N%", value_parser = share)]
    read_data_subset: Option<f64>,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text
        .trim_end_matches('%')
        .parse()
        .map_err(|_| "expected a share such as 10%".to_owned())?;
    if (0.0..=100.0).contains(&share) { Ok(share) } else { Err("expected 0% to 100%".to_owned()) }
}

impl DataArgs {
    /// Selects the files whose bytes are read in this run.
    pub(crate) fn wants(&self) -> impl Fn(&str) -> bool + use<> {
        self.wants_or(0.0)
    }

    /// Selects the files whose bytes are read: `share` percent, unless the options contain a share.
    pub(crate) fn wants_or(&self, share: f64) -> impl Fn(&str) -> bool + use<> {
        let share = if self.read_data { 100.0 } else { self.read_data_subset.unwrap_or(share) };
        let chance = std::hash::RandomState::new();
        move |name| share >= 100.0 || (chance.hash_one(name) % 100_000) as f64 / 1_000.0 < share
    }
}

/// Help for a finding.
pub(crate) const fn way_out(rule: &str) -> &'static str {
    match rule.as_bytes() {
        b"backup.damaged" => {
            "run `abreast backup --read-data` while the store is there: it replaces damaged contents; check the disk"
        }
        b"store.set" => {
            "nothing, if it is published again; `abreast drop DIR SET` drops it with its history"
        }
        b"store.schema" => "use the newer program that wrote it",
        b"store.damaged" | b"store.row" => {
            "restore a backup, or stop the server and run `abreast repair`; check the disk, it may be failing"
        }
        b"contents.missing" | b"contents.length" | b"contents.digest" => {
            "stop the server and run `abreast repair`; versions whose bytes are lost are dropped, others come from a backup"
        }
        b"contents.index" => {
            "stop the server and run `abreast repair`, or start the server again: the index is rebuilt from the contents"
        }
        b"contents.record" => {
            "stop the server and run `abreast repair --read-data`: the content is written again"
        }
        b"contents.orphan" => {
            "nothing; the next start of the server or `abreast repair` may remove them"
        }
        b"dumps.unfinished" | b"dumps.record" | b"dumps.package" => {
            "stop the server and run `abreast repair`: the dump is dropped, and made again when it is due"
        }
        b"dumps.manifest" => {
            "nothing, or stop the server and run `abreast repair --read-data`: the manifest is taken from its package"
        }
        b"archives.record" => {
            "stop the server and run `abreast repair`, or start the server again: the record is made again from the lists"
        }
        b"archives.list" => {
            "restore the file from a backup, or stop the server and run `abreast repair --read-data`: the archived list is dropped"
        }
        b"tokens.record" => {
            "stop the server and run `abreast repair`: it restores the tokens, or lists those that are lost"
        }
        b"temporary.record" => "nothing: the files are read again",
        b"notified.record" | b"served.record" => {
            "stop the server and run `abreast repair`, or start the server again: the record is made again"
        }
        b"site.record" => {
            "move it away, and run `abreast build` again: it is made again from the store"
        }
        b"dumps.derived" => {
            "stop the server and run `abreast repair --read-data`: the file is dropped, and made again when it is asked for"
        }
        b"snapshots.record" | b"snapshots.digest" => {
            "stop the server and run `abreast repair --read-data`: the snapshot is dropped, and made again when it is asked for"
        }
        b"copy.missing" | b"copy.changed" | b"copy.digest" => {
            "run `abreast sync --baseline` (for digests with `--full`): it fetches them again, and keeps locally changed files as backups"
        }
        b"copy.name" => "run `abreast sync --baseline`: it gets its own name back",
        b"copy.unrecorded" => "run `abreast repair`, then `abreast sync --baseline`",
        b"copy.left-out" => "report it to the operator of the Source",
        b"copy.leftover" => "run `abreast repair`, which removes it",
        b"copy.segment" => {
            "restore the file; or remove the state folder .abreast and run `abreast sync` again"
        }
        b"copy.pending" | b"copy.failing" | b"copy.fault" => "run `abreast sync`",
        b"copy.held" => {
            "list them with `abreast sync --dry-run`, then allow them with `--max-delete`"
        }
        b"sets.missing" => "run `abreast sync --all-sets`",
        b"copy.elsewhere" => "run `abreast audit`",
        b"copy.path" => "run `abreast sync --baseline`",
        b"state.damaged" => "run `abreast repair`, then `abreast sync`",
        b"hub.notification" | b"hub.topic" | b"hub.damaged" => {
            "stop the server and run `abreast repair`: what follows the damage is kept, Destinations fetch the rest"
        }
        b"hub.topic-url" | b"hub.target" | b"hub.verification" => {
            "stop the server and run `abreast repair`: what cannot be known is dropped, subscribers renew it"
        }
        b"store.schema-old" => "start the program of this version once",
        _ => "stop the server and run `abreast repair`",
    }
}

/// Runs `check`.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    let cancel = crate::signals::cancel_on_signal();
    let backups = match backups_of(crate::target::folder_of(&args.dir)) {
        Ok(backups) => backups,
        Err(error) => {
            logging::failure(&error, 13);
            return ExitCode::from(13);
        }
    };
    if !backups.is_empty() {
        return check_backups(args, &backups, &cancel);
    }
    let places = match StateFolders::find_all(&args.dir) {
        Ok(places) => places,
        Err(code) => return code,
    };
    let (mut findings, mut notes) = (Findings::default(), Vec::new());
    let mut checked = Ok(());
    for (set, place) in &places {
        let mut lines = Vec::new();
        if let (Some(set), true) = (set, place.is_none()) {
            let message = format!("the set in {set} has no copy yet");
            findings.note("sets.missing", args.dir.as_str(), message);
            continue;
        }
        checked = check_folder(place, &args.data, &mut findings, &mut lines, &cancel);
        notes.extend(lines.iter().map(|line| named(set.as_deref(), line)));
        if checked.is_err() {
            break;
        }
    }
    let complete = checked.is_ok();
    let code = match checked {
        Err(error) => {
            let code = if cancel.load(Ordering::Relaxed) { 130 } else { 13 };
            logging::failure(&error, code);
            code
        }
        Ok(()) => u8::from(!findings.is_consistent()),
    };
    print_report(args, &findings, &notes, complete);
    ExitCode::from(code)
}

/// The backups that a folder has, or is; none of the folder of a store or of a copy.
fn backups_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let is_other = !StateFolders::find(&dir.to_string_lossy())?.is_none() && !is_backup(dir);
    if is_other || !crate::there::is_dir(dir)? {
        return Ok(Vec::new());
    }
    backups_in(dir).with_context(|| format!("cannot read `{}`", dir.display()))
}

/// Whether a part of a backup could not be read, so that its bytes are not known.
fn is_unreadable(error: &anyhow::Error) -> bool {
    let is_of_reading = |error: &std::io::Error| {
        use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
        !matches!(error.kind(), NotFound | InvalidData | UnexpectedEof)
    };
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_of_reading))
        || error.chain().any(|cause| {
            let kind = cause.downcast_ref().map(abreast_core::LogError::kind);
            kind == Some(abreast_core::ErrorKind::Io)
        })
}

/// Checks all data of backups, because an incomplete backup cannot be restored. Contents that several
/// backups need are read once.
fn check_backups(args: &CheckArgs, backups: &[PathBuf], cancel: &AtomicBool) -> ExitCode {
    let (mut findings, mut notes) = (Findings::default(), Vec::new());
    let (mut whole, mut is_complete) = (HashSet::new(), true);
    for backup in backups {
        match check_backup(backup, &mut whole, cancel) {
            Err(_) if cancel.load(Ordering::Relaxed) => {
                print_report(args, &findings, &notes, false);
                return ExitCode::from(130);
            }
            Ok(manifest) => {
                let sets = count(manifest.sets.len() as u64, "set");
                notes.push(format!("backup of {}: whole, {sets}", manifest.created));
            }
            Err(error) if is_unreadable(&error) => {
                let error =
                    error.context(format!("cannot check the backup `{}`", backup.display()));
                logging::failure(&error, 13);
                is_complete = false;
            }
            Err(error) => {
                let location = backup.display().to_string();
                findings.add("backup.damaged", location, format!("{error:#}"));
            }
        }
    }
    print_report(args, &findings, &notes, is_complete);
    let code = if is_complete { u8::from(!findings.is_consistent()) } else { 13 };
    ExitCode::from(code)
}

/// A line about one set of several.
pub(crate) fn named(set: Option<&str>, line: &str) -> String {
    set.map_or_else(|| line.to_owned(), |set| format!("{set}: {line}"))
}

fn check_folder(
    place: &StateFolders,
    data: &DataArgs,
    findings: &mut Findings,
    notes: &mut Vec<String>,
    cancel: &AtomicBool,
) -> Result<()> {
    let wants = data.wants();
    if let Some(store) = &place.store {
        if let Some(pid) = holder_of(&store.join("source.lock")) {
            notes.push(format!("process {pid} is using the store"));
        }
        check_store(store, &wants, findings, notes, &mut |_, _| {}, cancel)?;
    }
    if let Some(hub) = &place.hub {
        let facts = check_hub(hub, findings)?;
        notes.push(format!(
            "hub: {}, {}, subscriptions and hubs to notify: {}",
            count(facts.topics, "topic"),
            count(facts.notifications, "notification"),
            facts.targets
        ));
    }
    if let Some(place) = &place.copy {
        if let Some(pid) = place.lock_file().and_then(|lock| holder_of(&lock)) {
            notes.push(format!(
                "process {pid} is using the copy: its changes during the check may be reported as findings"
            ));
        }
        let facts = check_copy(place, &wants, findings, cancel)?;
        notes.push(format!("copy: {}, {} read", count(facts.resources, "resource"), facts.read));
    }
    Ok(())
}

/// Checks the folder of a Source's store: log and tables, stored contents, dumps, snapshots.
pub(crate) fn check_store(
    store: &Path,
    wants: &dyn Fn(&str) -> bool,
    findings: &mut Findings,
    notes: &mut Vec<String>,
    damaged: Damaged<'_>,
    cancel: &AtomicBool,
) -> Result<()> {
    let unreadable = |findings: &Findings| -> u64 {
        ["store.damaged", "store.schema"]
            .iter()
            .filter_map(|code| findings.counts().get(code))
            .sum()
    };
    let unreadable_before = unreadable(findings);
    let sets = check_log(&store.join("source.db"), findings)?;
    for set in &sets {
        notes.push(format!(
            "set {}: {}, up to position {}",
            set.slug,
            count(set.resources, "resource"),
            set.position
        ));
    }
    let is_left_over = crate::served::is_left_over(store);
    for set in sets.iter().filter(|set| is_left_over(&set.slug)) {
        let resources = count(set.resources, "resource");
        let message = format!(
            "the set was not configured when the store was served last; it has {resources}"
        );
        findings.note("store.set", set.slug.as_str(), message);
    }
    let is_served = holder_of(&store.join("source.lock")).is_some();
    if unreadable(findings) > unreadable_before {
        notes.push(
            "kept contents: not checked, since the rows that need them cannot be read".to_owned(),
        );
    } else {
        let counts = ContentsCheck { store, is_served, wants, cancel }.run(findings, damaged)?;
        if counts.orphans > 0 {
            let message = format!("kept contents that no row needs: {}", counts.orphans);
            findings.note("contents.orphan", store.join("contents").display().to_string(), message);
        }
        if counts.kept > 0 {
            notes.push(format!("kept contents: {}, {} read", counts.kept, counts.read));
        }
    }
    let packages =
        abreast_source::dump::check_dumps(&store.join("dumps"), wants("dumps"), &mut |finding| {
            // A server makes dumps all the time.
            if !(is_served && finding.rule == "dumps.unfinished") {
                findings.add(finding.rule, finding.location, finding.message);
            }
        })
        .context("cannot check the dumps")?;
    if packages > 0 {
        notes.push(format!("packages of dumps: {packages}"));
    }
    let snapshots = check_snapshots(&store.join("snapshots"), wants("snapshots"), &mut |finding| {
        findings.add(finding.rule, finding.location, finding.message);
    })
    .context("cannot check the snapshots")?;
    if snapshots > 0 {
        notes.push(format!("snapshots: {snapshots}"));
    }
    check_records(store, wants("archives"), findings, notes)
}

/// Checks the small records of a store, and the files that the records describe.
fn check_records(
    store: &Path,
    read_archives: bool,
    findings: &mut Findings,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut add = |finding: Finding| findings.add(finding.rule, finding.location, finding.message);
    let lists = check_archives(&store.join("archives"), read_archives, &mut add)
        .context("cannot check the archives")?;
    if lists > 0 {
        notes.push(format!("archived lists: {lists}"));
    }
    check_notified(&notified_path(store))
        .context("cannot check the record of notified documents")?
        .into_iter()
        .for_each(&mut add);
    match check_tokens(&tokens_path(store)) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            notes.push("the tokens were not checked: only their owner may read them".to_owned());
        }
        found => found.context("cannot check the tokens")?.into_iter().for_each(&mut add),
    }
    let is_damaged = |path: &Path| {
        read_sealed(path).is_err_and(|error| error.kind() == std::io::ErrorKind::InvalidData)
    };
    if abreast_source::static_site::is_site_record_damaged(store)
        .context("cannot check the record of earlier builds")?
    {
        let message = "the record of the files that earlier builds wrote is damaged";
        findings.add("site.record", store.join("book").display().to_string(), message);
    }
    let served = store.join(crate::served::RECORD);
    if is_damaged(&served) {
        let message = "the record of the sets that were served is damaged";
        findings.add("served.record", served.display().to_string(), message);
    }
    for path in crate::rdf_files::records_of_files(store)? {
        if is_damaged(&path) {
            let message = "the record of the files that were read is damaged: they are read again";
            findings.add("temporary.record", path.display().to_string(), message);
        }
    }
    Ok(())
}

/// Prints the findings. If `complete` is false, the check stopped early, and unchecked data may be
/// damaged.
fn print_report(args: &CheckArgs, findings: &Findings, notes: &[String], complete: bool) {
    let severity =
        |finding: &Finding| if finding.severity == Severity::Note { "note" } else { "error" };
    if args.json {
        for finding in findings.list() {
            line(
                &json!({"type": "finding", "code": finding.rule, "severity": severity(finding), "location": finding.location,
                "message": finding.message, "help": way_out(finding.rule)})
                .to_string(),
            );
        }
        line(
            &json!({"type": "summary", "ok": complete && findings.is_consistent(), "complete": complete,
                "counts": findings.counts(), "notes": notes})
            .to_string(),
        );
        return;
    }
    for text in notes {
        line(text);
    }
    for finding in findings.list() {
        line(&format!("{} [{}] {}", severity(finding), finding.rule, finding.location));
        line(&format!("  {}", finding.message));
        line(&format!("  help: {}", way_out(finding.rule)));
    }
    for (rule, count) in findings.counts() {
        let shown = findings.list().iter().filter(|finding| finding.rule == *rule).count() as u64;
        if *count > shown {
            line(&format!("and {} more of {rule}", count - shown));
        }
    }
    line(match (findings.is_consistent(), complete) {
        (false, _) => "damage found",
        (true, true) => "no damage found",
        (true, false) => "not checked to the end; nothing was found so far",
    });
}

#[cfg(test)]
mod tests {
    use super::way_out;

    /// A finding without a help of its own gets that of a damaged store.
    #[test]
    fn the_help_of_each_finding_is_that_of_the_manual() {
        let manual = include_str!("../../../docs/maintenance.md");
        let rows = manual.lines().filter_map(|row| row.strip_prefix("| `")?.split_once(" | "));
        let mut checked = 0;
        for (codes, rest) in rows {
            let action = rest.rsplit_once(" | ").map_or(rest, |(_, action)| action);
            for code in codes.split('`').filter(|code| code.contains('.')) {
                let help = way_out(code);
                let may_repair = action.contains("repair") || action.starts_with("the same");
                assert!(may_repair || !help.contains("repair"), "{code}: {help}");
                assert!(
                    !action.contains("`sync") || help.contains("abreast sync"),
                    "{code}: {help}"
                );
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
    }
}
