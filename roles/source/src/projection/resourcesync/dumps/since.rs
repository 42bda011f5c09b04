//! Packages with the changes since a point, made on demand.

use super::changes::{self, Range, Which};
use super::dump_folder::{DumpFolder, compact, current};
use super::error::SinceError;
use super::record::Dump;
use super::{DumpError, Job, shared_dumps};
use crate::made::Making;
use crate::made::shared::{Attempt, Item, SharedError, SharedGroup};
use abreast_core::{ChangeLog, LogError, Page, Position, SetId};
use abreast_resourcesync::v1_1::SPEC_MAX_ENTRIES;
use abreast_webtypes::Timestamp;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

/// Packages kept for further requests.
const MOST_KEPT: usize = 8;
/// Bytes of them, in packages of the largest size.
const MOST_PARTS: u64 = 4;

/// Point after which changes are packaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// After the change at this position; 0 is before the first change.
    Position(u64),
    /// After all changes until this time.
    Time(Timestamp),
}

/// Range of the changes after a point until now.
pub(super) fn range(
    log: &dyn ChangeLog,
    set: SetId,
    since: Since,
    which: Which,
) -> Result<Range, SinceError> {
    let failed = |error: LogError| SinceError::Failed(Box::new(error));
    let head = log.head(set).map_err(failed)?;
    if head.importing {
        return Err(SinceError::Importing);
    }
    let (after, from) = match since {
        Since::Position(position) if position > head.position.0 => {
            return Err(SinceError::Ahead { position: head.position.0 });
        }
        Since::Position(position) => {
            let position = Position(position);
            (position, time_of(log, set, position).map_err(failed)?)
        }
        Since::Time(time) if time < head.created => {
            return Err(SinceError::TooOld { begins: head.created.to_string() });
        }
        Since::Time(time) if time > head.time.max(log.now()) => {
            return Err(SinceError::Ahead { position: head.position.0 });
        }
        Since::Time(time) => position_at(log, set, time).map_err(failed)?,
    };
    // Changes during this call may be newer than the head, and are left to the next request.
    Ok(Range { after, last: head.position.max(after), from, until: head.time.max(from), which })
}

/// Time of the change at a position; the beginning of the log for 0.
pub(crate) fn time_of(
    log: &dyn ChangeLog,
    set: SetId,
    position: Position,
) -> Result<Timestamp, LogError> {
    let mut time = log.head(set)?.created;
    if position.0 > 0 {
        log.read(set, Position(position.0 - 1), &mut |record| {
            if record.position == position {
                time = record.time;
            }
            ControlFlow::Break(())
        })?;
    }
    Ok(time)
}

/// Position and time of the last change until a time; the beginning of the log if there is none.
pub(super) fn position_at(
    log: &dyn ChangeLog,
    set: SetId,
    time: Timestamp,
) -> Result<(Position, Timestamp), LogError> {
    let position = log.position_at(set, time)?;
    Ok((position, time_of(log, set, position)?))
}

/// Number of the page that has, or would have, a position.
pub(super) fn page_of(
    log: &dyn ChangeLog,
    set: SetId,
    position: Position,
) -> Result<Option<Page>, LogError> {
    // A recreated log does not have the first pages.
    let first = log.pages(set, 1, 1)?.first().map_or(1, |page| page.number);
    let (mut low, mut high) = (first, log.head(set)?.open_page);
    let mut found = None;
    while low <= high {
        let middle = low + (high - low) / 2;
        let page =
            log.pages(set, middle, 1)?.into_iter().next().filter(|page| page.number == middle);
        match page {
            Some(page) if page.after < position => {
                low = middle + 1;
                found = Some(page);
            }
            _ => high = middle - 1,
        }
    }
    Ok(found)
}

/// File name of the package of a range, which is made if it does not exist.
pub(super) fn package(
    job: &Job<'_>,
    dump_folder: &Mutex<DumpFolder>,
    range: &Range,
    limit: u64,
) -> Result<String, SinceError> {
    let (from, until) = (compact(range.from), compact(range.until));
    let lock = || current(dump_folder);
    let name = match range.which {
        Which::Every => format!("since-{from}-{until}"),
        Which::Last => format!("since-last-{from}-{until}"),
    };
    let file = format!("{name}-1.zip");
    if lock().file(&file).is_some() {
        return Ok(file);
    }
    let weight = changes::weigh(job, range).map_err(failed)?;
    if weight.bytes > limit || weight.changes > SPEC_MAX_ENTRIES {
        return Err(SinceError::TooLarge { limit });
    }
    if let Some((position, _)) = changes::last_missing(job, range).map_err(failed)? {
        return Err(SinceError::NotKept { position: position.0 });
    }
    let shared = lock().shared.clone();
    if let Some(shared) = shared {
        return package_of_nodes(job, dump_folder, &shared, range, &name, limit).map(|()| file);
    }
    let root = lock().root().to_owned();
    let mut making = Making::begin(&root);
    let folder = match making.folder(&name) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(SinceError::Busy);
        }
        Err(error) => return Err(SinceError::Failed(Box::new(error))),
    };
    // Another request may have completed the package meanwhile.
    if lock().file(&file).is_some() {
        return Ok(file);
    }
    let dump = make(job, range, &folder, &name, limit)?;
    let mut dump_folder = lock();
    dump_folder.announce(making, dump).map_err(|error| SinceError::Failed(Box::new(error)))?;
    while dump_folder.dumps.len() > MOST_KEPT
        || (dump_folder.dumps.len() > 1 && bytes(&dump_folder) > limit.saturating_mul(MOST_PARTS))
    {
        dump_folder.remove_first(1);
    }
    dump_folder.file(&file).map(|_| file).ok_or(SinceError::Busy)
}

fn make(
    job: &Job<'_>,
    range: &Range,
    folder: &Path,
    name: &str,
    limit: u64,
) -> Result<Dump, SinceError> {
    match changes::make_patiently(job, range, folder, name) {
        Ok(dump) if dump.packages.len() > 1 => Err(SinceError::TooLarge { limit }),
        Ok(dump) => Ok(dump),
        Err(DumpError::NotKept { .. }) => Err(SinceError::Unsettled),
        Err(error) => Err(failed(error)),
    }
}

/// Makes and publishes a package that all nodes serve. The node does not need the turn, and another
/// node may publish the same package first.
fn package_of_nodes(
    job: &Job<'_>,
    dump_folder: &Mutex<DumpFolder>,
    shared: &SharedGroup,
    range: &Range,
    name: &str,
    limit: u64,
) -> Result<(), SinceError> {
    let attempt = Attempt::begin_any(shared).map_err(|error| failed(error.into()))?;
    if shared.known().1.item(name).is_some() {
        return Ok(());
    }
    let dump = make(job, range, attempt.folder(), name, limit)?;
    let surplus = |items: &[Item]| {
        let bytes = |item: &Item| item.files.iter().map(|file| file.length).sum::<u64>();
        let mut left = items.iter().map(bytes).sum::<u64>();
        let is_surplus = |(place, item): &(usize, &Item)| {
            let surplus =
                items.len() - place > MOST_KEPT || left > limit.saturating_mul(MOST_PARTS);
            left -= bytes(item);
            surplus
        };
        items.iter().enumerate().take_while(is_surplus).count()
    };
    let finished = shared_dumps::finished(&current(dump_folder), &dump, false, &surplus);
    match attempt.publish(finished, &|| job.cancel.is_wanted()) {
        Err(SharedError::Published) => Ok(()),
        published => published.map_err(|error| failed(error.into())),
    }
}

fn bytes(dump_folder: &DumpFolder) -> u64 {
    dump_folder.dumps.iter().map(|dump| dump.bytes()).sum()
}

fn failed(error: DumpError) -> SinceError {
    match error {
        DumpError::Cancelled | DumpError::Shared(SharedError::Stopped) => SinceError::Busy,
        DumpError::Importing => SinceError::Importing,
        DumpError::Shared(error) if error.retry().is_some() => SinceError::Busy,
        error => SinceError::Failed(Box::new(error)),
    }
}
