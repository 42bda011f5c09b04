//! How do members of packages get into the sink? By several threads, straight out of the file, verified like any body.

use super::Chosen;
use super::archive::{Package, SMALL_BYTES};
use super::listing::unusable;
use super::manifest::Manifest;
use crate::apply::Report;
use crate::desk::Desk;
use crate::error::{Error, ExitCode};
use crate::fetch::Rules;
use crate::read::resourcesync::discover::Entrance;
use crate::read::resourcesync::manifest::read_manifest;
use crate::session::Session;
use crate::sink::Sink;
use crate::sink::outcome::{Failure, Outcome};
use crate::store::{Facts, Storer};
use crate::together::digests_of_all;
use crate::workers::{Chunk, DoneChunk};
use abreast_store::mirror::Task;
use abreast_webtypes::{Digests, Timestamp};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// Items handed out together.
const CHUNK_ITEMS: usize = 64;
/// Bytes read ahead for one chunk; members beyond are read when they are stored.
const CHUNK_BYTES: usize = 4 << 20;
/// Chunks handed out at a time.
const OUTSTANDING_CHUNKS: usize = 48;
/// Items read from the plan at a time.
const READ_ITEMS: usize = 512;
/// Members of one package that cannot be used and are told one by one.
const TOLD_MAX: u64 = 100;
/// How often a stop is looked for.
const TICK: Duration = Duration::from_millis(100);

/// One package, opened, with what it is for.
struct Supply<'a> {
    package: Package,
    manifest: Manifest,
    url: &'a str,
    /// The instant of the snapshot, microseconds.
    at: Option<i64>,
    is_plan: bool,
}

impl Session<'_> {
    /// Takes what is planned out of packages, when that is cheaper than asking for each; the rest stays planned.
    pub(crate) fn apply_packages(&mut self, entrance: &Entrance, reports: &mut Vec<Report>) -> Result<(), Error> {
        self.apply_changes_since(entrance, reports)?;
        let counts = self.mirror.pending_counts()?;
        if counts.fetches == 0 {
            self.sweep_packages();
            return Ok(());
        }
        let Some(chosen) = self.choose_packages(entrance, counts)? else {
            self.sweep_packages();
            return Ok(());
        };
        self.report.begin_phase("fetching");
        for package in &chosen.packages {
            self.check_cancelled()?;
            if self.mirror.pending_counts()?.fetches == 0 || self.report.summary.budget_spent {
                break;
            }
            let supplied = self.download(package).and_then(|file| self.apply_package(&chosen, package, file, reports));
            match supplied {
                Ok(()) => self.discard_package(package),
                Err(error) if error.code() == "dump.space" => {
                    self.report.notice(
                        error.code(),
                        &package.url,
                        &format!("{error}\n  resources are asked for one by one"),
                    );
                    break;
                }
                Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io | ExitCode::Other) => {
                    return Err(error);
                }
                Err(error) => {
                    self.report.notice(
                        error.code(),
                        &package.url,
                        &format!("{error}\n  resources are asked for one by one"),
                    );
                    self.discard_package(package);
                }
            }
        }
        self.sweep_packages();
        Ok(())
    }

    pub(super) fn apply_package(
        &mut self,
        chosen: &Chosen,
        listed: &super::listing::ListedPackage,
        file: File,
        reports: &mut Vec<Report>,
    ) -> Result<(), Error> {
        let package = Package::open(file).map_err(|error| unusable(listed, &error))?;
        let care = self.requests.care.clone();
        let manifest = read_manifest(&package, &listed.url, chosen.packaged, &care, &mut |_, _| Ok(()))?;
        self.tell_noticed();
        if manifest.strays > 0 {
            let message = format!("{} of its members are not named by its manifest, and ignored", manifest.strays);
            self.report.notice("dump.stray", &listed.url, &message);
        }
        let at = chosen.at.into_iter().chain(manifest.at).min().map(Timestamp::as_micros);
        let mut supply = Supply { package, manifest, url: &listed.url, at, is_plan: chosen.is_plan };
        self.mirror.begin()?;
        self.tell_faults(&mut supply, reports)?;
        let result = self.supply(&supply, reports);
        if result.is_err() {
            self.mirror.rollback()?;
        }
        result
    }

    /// Entries of the manifest that lead to no member. Where the manifest is the plan they are refused; else their
    /// resources are asked for like any others.
    fn tell_faults(&mut self, supply: &mut Supply<'_>, reports: &mut Vec<Report>) -> Result<(), Error> {
        let faults = std::mem::take(&mut supply.manifest.faults);
        let told = faults.len() as u64;
        for (uri, failure) in faults {
            let Some(task) = self.mirror.task(&uri)? else { continue };
            if supply.manifest.members_for(&uri).next().is_some() {
                continue;
            }
            if supply.is_plan {
                self.keep(vec![(task, Some(Outcome::Failed(failure)))], reports)?;
            } else {
                self.report.notice(failure.code, &uri, &format!("{}; asked for by itself", failure.message));
            }
        }
        if supply.manifest.faulty > told {
            let message = format!("{} more entries of its manifest lead to no member", supply.manifest.faulty - told);
            self.report.notice("dump.missing", supply.url, &message);
        }
        Ok(())
    }

    /// Stores what is planned and in the package. The caller has begun a transaction.
    fn supply(&mut self, supply: &Supply<'_>, reports: &mut Vec<Report>) -> Result<(), Error> {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2);
        let threads = self.options.threads.unwrap_or(cores).clamp(1, 64);
        let desk = Desk::new(threads);
        let (send_done, done) = std::sync::mpsc::channel::<DoneChunk>();
        let stop = AtomicBool::new(false);
        let (sink, rules) = (Arc::clone(self.sink()), Arc::clone(&self.rules));
        std::thread::scope(|scope| {
            for number in 0..threads {
                let (desk, stop, sink, rules, done) = (&desk, &stop, &sink, &rules, send_done.clone());
                std::thread::Builder::new()
                    .name(format!("unpack-{number}"))
                    .spawn_scoped(scope, move || {
                        if let Err(error) = unpack(number, supply, (sink, rules), desk, stop, &done) {
                            tracing::error!(%error, "cannot start a thread's runtime");
                        }
                    })
                    .map_err(|cause| {
                        desk.close();
                        Error::new("io", ExitCode::Io, "cannot start a thread").with_cause(cause)
                    })?;
            }
            drop(send_done);
            let result = self.hand_out(supply, &desk, &done, &stop, reports);
            stop.store(true, Ordering::Relaxed);
            desk.close();
            result
        })
    }

    fn hand_out(
        &mut self,
        supply: &Supply<'_>,
        desk: &Desk,
        done: &Receiver<DoneChunk>,
        stop: &AtomicBool,
        reports: &mut Vec<Report>,
    ) -> Result<(), Error> {
        let counts = self.mirror.pending_counts()?;
        let batch_items = self.sink().batch_items();
        let mut due = VecDeque::new();
        let (mut key, mut exhausted) = (String::new(), false);
        let (mut outstanding, mut finished, mut uncommitted) = (0, 0, 0);
        let mut left = Left::default();
        let mut fatal = None;
        loop {
            if self.is_cancelled() {
                stop.store(true, Ordering::Relaxed);
            }
            while outstanding < OUTSTANDING_CHUNKS && !stop.load(Ordering::Relaxed) {
                if due.is_empty() && !exhausted {
                    let mut read = Vec::with_capacity(READ_ITEMS);
                    self.mirror.fetches_after(&key, READ_ITEMS, &mut read)?;
                    exhausted = read.len() < READ_ITEMS;
                    if let Some(last) = read.last() {
                        key.clone_from(&last.pending.uri);
                    }
                    due = read.into();
                }
                if due.is_empty() {
                    break;
                }
                let chunk: Chunk = due.drain(..due.len().min(CHUNK_ITEMS)).collect();
                desk.put(chunk);
                outstanding += 1;
            }
            if outstanding == 0 {
                break;
            }
            self.report.status(finished, counts.fetches, counts.bytes);
            let mut chunk = match done.recv_timeout(TICK) {
                Ok(chunk) => chunk,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new("internal", ExitCode::Other, "an unpacking thread ended early")
                        .with_help("please report this"));
                }
            };
            outstanding -= 1;
            finished += chunk.len() as u64;
            uncommitted += chunk.len() as u64;
            for (task, outcome) in &mut chunk {
                if let Some(Outcome::Failed(failure)) = outcome
                    && supply.leaves(failure)
                {
                    self.tell_left(supply, task, failure, &mut left);
                    *outcome = None;
                }
            }
            fatal = fatal.or(self.keep(chunk, reports)?);
            if fatal.is_some() || self.report.over_budget(counts.fetches) {
                stop.store(true, Ordering::Relaxed);
            }
            if uncommitted >= batch_items {
                self.settle_and_commit()?;
                self.mirror.begin()?;
                uncommitted = 0;
            }
        }
        self.settle_and_commit()?;
        if left.other_versions > 0 {
            let message = format!(
                "{} of its members are not the versions listed; these are asked for one by one",
                left.other_versions
            );
            self.report.notice("dump.version", supply.url, &message);
        }
        match fatal {
            Some(error) => Err(error),
            None => self.check_cancelled(),
        }
    }

    fn tell_left(&mut self, supply: &Supply<'_>, task: &Task, failure: &Failure, left: &mut Left) {
        if failure.code == "fixity.mismatch" {
            left.other_versions += 1;
            return;
        }
        left.unusable += 1;
        if left.unusable <= TOLD_MAX {
            let message = format!("{} ({}); asked for by itself", failure.message, supply.url);
            self.report.notice(failure.code, &task.pending.uri, &message);
        }
    }
}

/// What a package could not supply.
#[derive(Default)]
struct Left {
    /// Members that are not as listed.
    other_versions: u64,
    /// Members that cannot be read.
    unusable: u64,
}

impl Supply<'_> {
    /// Is this a matter of the package, so that asking for the resource may do better?
    fn leaves(&self, failure: &Failure) -> bool {
        if failure.fatal {
            return false;
        }
        let of_package = failure.code.starts_with("dump.");
        if self.is_plan && of_package && failure.refused {
            // The package is what the Source lists: what is wrong in it is wrong at the Source.
            return false;
        }
        of_package || matches!(failure.code, "fixity.mismatch" | "body.read")
    }

    /// The member with the bytes that an item wants, if they are sure to be those: by a digest that is listed, or by
    /// a time, since without a digest nothing else tells versions apart.
    fn member_for(&self, task: &Task) -> Option<u32> {
        self.found_for(task).map(|(number, _)| number)
    }

    /// What is known of a member beside its bytes. Its time is the resource's, as `Last-Modified` is for one that is
    /// fetched: what the manifest states, or else the package's directory.
    fn facts_of(&self, task: &Task) -> Facts {
        let last_modified = self.found_for(task).and_then(|(number, listed)| {
            let seconds = || self.package.member(number).modified();
            listed.and_then(|micros| micros.checked_mul(1_000)).or_else(|| seconds()?.checked_mul(1_000_000_000))
        });
        Facts { last_modified, ..Facts::default() }
    }

    fn found_for(&self, task: &Task) -> Option<(u32, Option<i64>)> {
        let (number, modified) = self.manifest.members_for(&task.pending.uri).next_back()?;
        let mut digests = Digests::default();
        digests.set_from_bytes(&task.pending.digests);
        let is_sure = self.is_plan
            || digests.strongest().is_some()
            || task.pending.modified.is_some_and(|listed| modified == Some(listed) || self.at >= Some(listed));
        is_sure.then_some((number, modified))
    }
}

/// A member read, or what became of the item instead.
enum Ready {
    /// In memory: where in the bytes of its chunk.
    Bytes(Range<usize>),
    /// Too long for that: read while it is stored.
    Long(u32),
    /// It cannot be read.
    Failed(Failure),
    /// It is not in the package.
    Absent,
}

/// One thread's life: reads, unpacks and digests the members of a chunk, then stores them.
fn unpack(
    thread: usize,
    supply: &Supply<'_>,
    (sink, rules): (&Arc<dyn Sink>, &Arc<Rules>),
    desk: &Desk,
    stop: &AtomicBool,
    done: &Sender<DoneChunk>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut storer = Storer::new(sink, rules);
    let (mut bytes, mut block) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        while let Some(chunk) = desk.take(thread).await {
            bytes.clear();
            let ready: Vec<_> = chunk.iter().map(|task| prepare(supply, task, &mut bytes, &mut block)).collect();
            let bodies = ready.iter().zip(&chunk).map(|(ready, task)| match ready {
                Ready::Bytes(range) => Some((task, &bytes[range.clone()])),
                _ => None,
            });
            let sums = digests_of_all(bodies);
            let mut results = DoneChunk::with_capacity(chunk.len());
            for ((task, ready), digests) in chunk.into_iter().zip(ready).zip(sums) {
                let facts = supply.facts_of(&task);
                let outcome = match ready {
                    _ if stop.load(Ordering::Relaxed) => None,
                    Ready::Absent => None,
                    Ready::Failed(failure) => Some(Outcome::Failed(failure)),
                    Ready::Bytes(range) => Some(storer.store_hashed(&task, facts, &bytes[range], digests).await),
                    Ready::Long(number) => match supply.package.reader(supply.package.member(number)) {
                        Ok(reader) => Some(storer.store_body(&task, facts, reader).await),
                        Err(failure) => Some(Outcome::Failed(failure)),
                    },
                };
                results.push((task, outcome));
            }
            if done.send(results).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Reads the member for one item, when it is small enough for memory.
fn prepare(supply: &Supply<'_>, task: &Task, bytes: &mut Vec<u8>, block: &mut Vec<u8>) -> Ready {
    let Some(number) = supply.member_for(task) else { return Ready::Absent };
    let member = supply.package.member(number);
    if !member.is_small() || bytes.len() > CHUNK_BYTES {
        return match member.check() {
            Ok(()) => Ready::Long(number),
            Err(failure) => Ready::Failed(failure),
        };
    }
    match supply.package.read_into(member, bytes, block) {
        Ok(range) => Ready::Bytes(range),
        Err(failure) => Ready::Failed(failure),
    }
}

const _: () = assert!(SMALL_BYTES <= crate::store::MEMORY_BYTES as u64, "a small member fits the memory for bodies");
