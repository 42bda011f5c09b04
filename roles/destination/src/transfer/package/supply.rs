//! Members of packages into the sink: by several threads, straight out of the file, verified like
//! any body.

use crate::plan::manifest::{Manifest, Placed};
use crate::plan::planner::PlanContext;
use crate::read::driver::Driver;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::request::package::archive::{Package, SMALL_BYTES};
use crate::request::package::listing::{Dump, ListedPackage, Packaged, unusable};
use crate::request::requests::Requests;
use crate::sink::Sink;
use crate::sink::outcome::Outcome;
use crate::transfer::Transfer;
use crate::transfer::fetch::together::digests_of_all;
use crate::transfer::rules::Rules;
use crate::transfer::store::{Facts, Storer};
use crate::transfer::work_queue::{Chunk, WorkQueue};
use crate::transfer::workers::DoneChunk;
use abreast_core::start_scoped;
use abreast_store::mirror::{Pending, Task};
use abreast_webtypes::{Digests, Timestamp};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// Number of items that are handed out together.
const CHUNK_ITEMS: usize = 64;
/// Number of bytes that are read ahead for one chunk; further members are read when they are
/// stored.
const CHUNK_BYTES: usize = 4 << 20;
/// Number of chunks that are handed out at a time.
const OUTSTANDING_CHUNKS: usize = 48;
/// Number of items that are read from the plan at a time.
const READ_ITEMS: usize = 512;
/// Maximum number of unusable members of a package that are reported individually.
const REPORTED_MAX: u64 = 100;
/// Interval of the checks for a request to stop.
const TICK: Duration = Duration::from_millis(100);

/// An open package with its manifest, and its role in the plan.
pub(crate) struct Supply<'a> {
    package: Package,
    manifest: Manifest,
    url: &'a str,
    /// The instant of the snapshot, in microseconds.
    at: Option<i64>,
    packaged: Packaged,
    is_plan: bool,
    /// Whether the plan was made from a manifest next to the package, which may have another time.
    is_beside: bool,
}

/// Stores the planned members of a package.
pub(super) fn apply_package(
    transfer: &mut Transfer<'_>,
    reader: &mut Driver,
    run: &mut PlanContext<'_, '_>,
    dump: &Dump,
    listed: &ListedPackage,
    file: File,
) -> Result<(), Error> {
    let mut supply = Supply::open(reader, run.requests, dump, (listed, file))?;
    let report = &mut *run.report;
    run.requests.diagnostics.report(report);
    if supply.manifest.strays > 0 {
        let message = format!(
            "{} of its members are not named by its manifest, and ignored",
            supply.manifest.strays
        );
        report.notice("dump.stray", &listed.url, &message);
    }
    transfer.mirror.begin()?;
    report_faults(transfer, &mut supply, report)?;
    let result = unpack_all(transfer, &supply, report);
    if result.is_err() {
        transfer.roll_back()?;
    }
    result
}

/// Entries of the manifest without a member; their resources are requested individually.
fn report_faults(
    transfer: &Transfer<'_>,
    supply: &mut Supply<'_>,
    report: &mut Reporter<'_>,
) -> Result<(), Error> {
    let faults = std::mem::take(&mut supply.manifest.faults);
    let reported = faults.len() as u64;
    for (uri, failure) in faults {
        if transfer.mirror.task(&uri)?.is_some()
            && supply.manifest.members_for(&uri).next().is_none()
        {
            report.notice(failure.code, &uri, &format!("{}; asked for by itself", failure.message));
        }
    }
    if supply.manifest.faulty > reported {
        let message = format!(
            "more entries of its manifest that lead to no member: {}",
            supply.manifest.faulty - reported
        );
        report.notice("dump.missing", supply.url, &message);
    }
    Ok(())
}

/// Stores the planned resources in the package. The caller has started a transaction.
fn unpack_all(
    transfer: &mut Transfer<'_>,
    supply: &Supply<'_>,
    report: &mut Reporter<'_>,
) -> Result<(), Error> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2);
    let threads = transfer.options.threads.unwrap_or(cores).clamp(1, 64);
    let queue = WorkQueue::new(threads);
    let (send_done, done) = std::sync::mpsc::channel::<DoneChunk>();
    let stop = AtomicBool::new(false);
    let (sink, rules) = (Arc::clone(&transfer.sink), Arc::clone(&transfer.rules));
    std::thread::scope(|scope| {
        for number in 0..threads {
            let (queue, stop, sink, rules, done) =
                (&queue, &stop, &sink, &rules, send_done.clone());
            start_scoped(scope, format!("unpack-{number}"), move || {
                if let Err(error) = unpack(number, supply, (sink, rules), queue, stop, &done) {
                    tracing::error!(%error, "cannot start a thread's runtime");
                }
            })
            .map_err(|cause| {
                queue.close();
                Error::new("io", ExitCode::Io, "cannot start a thread").with_cause(cause)
            })?;
        }
        drop(send_done);
        let result = hand_out(transfer, supply, &queue, &done, &stop, report);
        stop.store(true, Ordering::Relaxed);
        queue.close();
        result
    })
}

fn hand_out(
    transfer: &mut Transfer<'_>,
    supply: &Supply<'_>,
    queue: &WorkQueue,
    done: &Receiver<DoneChunk>,
    stop: &AtomicBool,
    report: &mut Reporter<'_>,
) -> Result<(), Error> {
    let counts = transfer.mirror.pending_counts()?;
    let batch_items = transfer.sink.batch_items();
    let mut due = VecDeque::new();
    let (mut key, mut exhausted) = (String::new(), false);
    let (mut outstanding, mut finished, mut uncommitted) = (0, 0, 0);
    let mut left = Left::default();
    let mut fatal = None;
    loop {
        if transfer.requests.is_cancelled() {
            stop.store(true, Ordering::Relaxed);
        }
        while outstanding < OUTSTANDING_CHUNKS && !stop.load(Ordering::Relaxed) {
            if due.is_empty() && !exhausted {
                let mut read = Vec::with_capacity(READ_ITEMS);
                transfer.mirror.fetches_after(&key, READ_ITEMS, &mut read)?;
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
            queue.put(chunk);
            outstanding += 1;
        }
        if outstanding == 0 {
            break;
        }
        report.status(finished, counts.fetches, counts.bytes);
        let mut chunk = match done.recv_timeout(TICK) {
            Ok(chunk) => chunk,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(
                    "internal",
                    ExitCode::Other,
                    "an unpacking thread ended early",
                )
                .with_help("please report this"));
            }
        };
        outstanding -= 1;
        finished += chunk.len() as u64;
        uncommitted += chunk.len() as u64;
        for (task, outcome) in &mut chunk {
            if let Some(Outcome::Failed(failure)) = outcome
                && is_of_package(failure)
            {
                report_left(report, supply, task, failure, &mut left);
                *outcome = None;
            }
        }
        fatal = fatal.or(transfer.take(chunk, report)?);
        if fatal.is_some() || report.is_over_budget(counts.fetches, &transfer.options.url) {
            stop.store(true, Ordering::Relaxed);
        }
        if uncommitted >= batch_items {
            fatal = fatal.or(transfer.settle_and_commit(report)?);
            if fatal.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
            transfer.mirror.begin()?;
            uncommitted = 0;
        }
    }
    fatal = fatal.or(transfer.settle_and_commit(report)?);
    transfer.check_settled()?;
    if left.other_versions > 0 {
        let message = format!(
            "{} of its members are not the versions listed; these are asked for one by one",
            left.other_versions
        );
        report.notice("dump.version", supply.url, &message);
    }
    match fatal {
        Some(error) => Err(error),
        None => transfer.requests.check_cancelled(),
    }
}

fn report_left(
    report: &mut Reporter<'_>,
    supply: &Supply<'_>,
    task: &Task,
    failure: &Failure,
    left: &mut Left,
) {
    if failure.code == "fixity.mismatch" {
        left.other_versions += 1;
        return;
    }
    left.unusable += 1;
    if left.unusable <= REPORTED_MAX {
        let message = format!("{} ({}); asked for by itself", failure.message, supply.url);
        report.notice(failure.code, &task.pending.uri, &message);
    }
}

/// Items that a package could not supply.
#[derive(Default)]
struct Left {
    /// Members that are not as listed.
    other_versions: u64,
    /// Members that cannot be read.
    unusable: u64,
}

/// Whether this is a fault of the package, so that requesting the resource may succeed.
fn is_of_package(failure: &Failure) -> bool {
    let is_fault = failure.code.starts_with("dump.")
        || matches!(failure.code, "fixity.mismatch" | "body.read" | "rdf.type");
    is_fault && !failure.fatal
}

impl<'a> Supply<'a> {
    /// Opens a package of a dump.
    ///
    /// # Errors
    /// The package cannot be used.
    pub(crate) fn open(
        reader: &mut Driver,
        requests: &Requests<'_>,
        dump: &Dump,
        (listed, file): (&'a ListedPackage, File),
    ) -> Result<Self, Error> {
        let package = Package::open(file, &|| requests.check_continues())
            .map_err(|error| unusable(listed, &error))?;
        let manifest = reader.manifest(requests, &package, &listed.url, dump.packaged)?;
        let at = dump.at.into_iter().chain(manifest.at).min();
        // A time in the future shows nothing.
        let is_past = |at: &Timestamp| dump.latest.is_none_or(|latest| *at <= latest);
        let at = at.filter(is_past).map(Timestamp::as_micros);
        let (url, is_plan, is_beside) = (&*listed.url, dump.is_plan, listed.manifest.is_some());
        let packaged = dump.packaged;
        Ok(Self { package, manifest, url, at, packaged, is_plan, is_beside })
    }

    /// The bytes of the member for an item, in a simulation.
    #[cfg(test)]
    pub(crate) fn bytes_for(&self, task: &Task) -> Option<Vec<u8>> {
        let (mut bytes, mut block) = (Vec::new(), Vec::new());
        match prepare(self, task, &mut bytes, &mut block) {
            Ready::Bytes(range) => Some(bytes[range].to_vec()),
            _ => None,
        }
    }

    /// The member with the required bytes, if they are certain: by a listed digest, or by a time,
    /// since versions cannot be distinguished otherwise without a digest.
    fn member_for(&self, task: &Task) -> Option<u32> {
        self.found_for(task).map(|placed| placed.number)
    }

    /// Metadata of a member. Its time is the time of the resource, as `Last-Modified` is for
    /// fetched resources: the time in the manifest, or else in the directory of the package.
    fn facts_of(&self, task: &Task) -> Facts {
        let last_modified = self.found_for(task).and_then(|placed| {
            let seconds = || self.package.member(placed.number).modified();
            placed
                .modified
                .and_then(|micros| micros.checked_mul(1_000))
                .or_else(|| seconds()?.checked_mul(1_000_000_000))
        });
        let media_type = self.found_for(task).and_then(|placed| self.manifest.media_type(placed));
        Facts { last_modified, media_type: media_type.map(str::to_owned), ..Facts::default() }
    }

    fn found_for(&self, task: &Task) -> Option<Placed> {
        let (item, mut digests) = (&task.pending, Digests::default());
        let placed = self.manifest.members_for(&item.uri).next_back()?;
        digests.set_from_bytes(&item.digests);
        let is_sure = digests.strongest().is_some() || self.is_version(item, placed);
        is_sure.then_some(placed)
    }

    /// Whether a member is the version that an item wants, by the times of both.
    fn is_version(&self, item: &Pending, placed: Placed) -> bool {
        // An item from a list lacks the time of a change, and a package of changes may contain
        // older versions of its resource.
        let is_own = self.is_plan && self.packaged == Packaged::Snapshot;
        match item.changed.filter(|_| self.is_plan) {
            // Another change than the entry's change may have been planned, from a later package or
            // from a list.
            Some(_) if self.packaged == Packaged::Snapshot => false,
            Some(changed) => placed.changed.is_none_or(|own| own == changed),
            // If the manifest contains the time of the version, the time of the dump is not
            // evidence, and the item has the time in the manifest.
            None => item.modified.map_or(
                is_own && (self.is_beside || placed.modified.is_none()),
                |listed| {
                    let is_later = is_own && !self.is_beside || self.at >= Some(listed);
                    placed.modified.map_or(is_later, |modified| modified == listed)
                },
            ),
        }
    }
}

/// A member read, or what became of the item instead.
enum Ready {
    /// In memory: where in the bytes of its chunk.
    Bytes(Range<usize>),
    /// The member is too long for reading ahead, and is read while it is stored.
    Long(u32),
    /// The member cannot be read.
    Failed(Failure),
    /// The package does not contain the resource.
    Absent,
}

/// The work of a thread: reads, decompresses and hashes the members of a chunk, then stores them.
fn unpack(
    thread: usize,
    supply: &Supply<'_>,
    (sink, rules): (&Arc<dyn Sink>, &Arc<Rules>),
    queue: &WorkQueue,
    stop: &AtomicBool,
    done: &Sender<DoneChunk>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut storer = Storer::new(sink, rules);
    let (mut bytes, mut block) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        while let Some(chunk) = queue.take(thread).await {
            bytes.clear();
            let ready: Vec<_> =
                chunk.iter().map(|task| prepare(supply, task, &mut bytes, &mut block)).collect();
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
                    Ready::Bytes(range) => {
                        Some(storer.store_hashed(&task, facts, &bytes[range], digests).await)
                    }
                    Ready::Long(number) => {
                        match supply.package.reader(supply.package.member(number)) {
                            Ok(reader) => Some(storer.store_body(&task, facts, reader).await),
                            Err(failure) => Some(Outcome::Failed(failure)),
                        }
                    }
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

/// Reads the member for an item, if it is small enough for memory.
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

const _: () = assert!(
    SMALL_BYTES <= crate::transfer::store::MEMORY_BYTES as u64,
    "a small member fits the memory for bodies"
);
