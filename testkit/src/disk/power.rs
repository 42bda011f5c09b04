//! What a disk may hold after loss of power, made from the notes of `strace`: of a database, or of
//! a folder.
//!
//! `ABREAST_TEST_STRACE` names another `strace`, `ABREAST_POWER_LOSSES` asks for more instants,
//! `ABREAST_CRASH_SEED` repeats a failing run.

use crate::run::environment::{number, skipped};
use abreast_core::testing::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

const SECTOR: usize = 512;

/// What happened, in order.
#[expect(missing_docs, reason = "files, and their bytes")]
pub enum Event {
    /// A file was created.
    Created { file: String },
    /// A file was renamed.
    Renamed { from: String, to: String },
    /// Written behind what was written this way before.
    Appended { file: String, bytes: Vec<u8> },
    /// All of the file system was made durable.
    AllDurable,
    /// Written at a place of a file.
    Write { file: String, offset: usize, bytes: Vec<u8> },
    /// A file was cut, or made longer.
    Truncate { file: String, length: usize },
    /// A file or a folder was made durable.
    Durable { file: String },
    /// A file was removed.
    Removed { file: String },
    /// The child reported this number: what it did before must not be lost.
    Acknowledged(u64),
}

/// Runs the test `child` of this program under strace, with the store to write in a variable;
/// `None` when this system cannot.
fn notes(variable: &str, path: &Path, notes: &Path) -> Option<Vec<Event>> {
    let status = strace()
        .args(["-f", "-qq", "-xx", "-y", "-s", "1000000", "-e", "signal=none"])
        .args([
            "-e",
            "trace=openat,pwrite64,write,ftruncate,fdatasync,fsync,syncfs,unlink,unlinkat,rename,renameat,renameat2",
            "-o",
        ])
        .arg(notes)
        .arg(std::env::current_exe().expect("the test binary"))
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(variable, path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(notes).ok()?;
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    let mut events = Vec::new();
    for line in text.lines() {
        let (thread, call) = line.split_once(' ')?;
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(thread, begun);
            // Written from here on, as far as a reader of the disk can tell.
            events.extend(event(begun).filter(|event| !is_durability(event)));
        } else if call.starts_with("<... ") {
            // Durable only when the call has returned.
            let begun = unfinished.remove(thread)?;
            events.extend(event(begun).filter(is_durability));
        } else {
            events.extend(event(call));
        }
    }
    Some(events)
}

fn is_durability(event: &Event) -> bool {
    matches!(event, Event::Durable { .. } | Event::AllDurable)
}

/// The paths of a call: names, each below the folder before it.
fn paths(arguments: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (place, part) in arguments.split('"').enumerate().filter(|(place, _)| place % 2 == 1) {
        let name = text(part);
        let before = arguments.split('"').nth(place - 1).unwrap_or_default();
        let folder = before
            .rsplit_once('<')
            .and_then(|(_, rest)| rest.split_once('>'))
            .map(|(folder, _)| text(folder));
        paths.push(match folder {
            Some(folder) if !name.starts_with('/') => format!("{folder}/{name}"),
            _ => name,
        });
    }
    paths
}

fn event(call: &str) -> Option<Event> {
    let (name, arguments) = call.split_once('(')?;
    if call.contains(" = -1 ") {
        return None;
    }
    let file = || arguments.split_once('<')?.1.split_once('>').map(|(name, _)| text(name));
    let string = || {
        arguments.split_once('"')?.1.split_once('"').map(|(string, rest)| (decoded(string), rest))
    };
    let numbers = |rest: &str| -> Vec<usize> {
        let rest = rest.split(')').next().unwrap_or_default();
        rest.split(',').filter_map(|number| number.trim().parse().ok()).collect()
    };
    match name {
        "pwrite64" => {
            let (bytes, rest) = string()?;
            Some(Event::Write { file: file()?, offset: *numbers(rest).get(1)?, bytes })
        }
        "write" => {
            let (bytes, _) = string()?;
            let text = std::str::from_utf8(&bytes).unwrap_or_default();
            let acknowledged = text.strip_prefix("ack ").and_then(|step| step.trim().parse().ok());
            acknowledged
                .map(Event::Acknowledged)
                .or_else(|| Some(Event::Appended { file: file()?, bytes }))
        }
        "ftruncate" => {
            let length = *numbers(arguments.split_once('>')?.1).first()?;
            Some(Event::Truncate { file: file()?, length })
        }
        "fdatasync" | "fsync" => Some(Event::Durable { file: file()? }),
        "syncfs" => Some(Event::AllDurable),
        "unlink" | "unlinkat" => Some(Event::Removed { file: paths(arguments).pop()? }),
        "openat" if arguments.contains("O_CREAT") => {
            Some(Event::Created { file: paths(arguments).pop()? })
        }
        "rename" | "renameat" | "renameat2" => {
            let mut both = paths(arguments);
            let (to, from) = (both.pop()?, both.pop()?);
            Some(Event::Renamed { from, to })
        }
        _ => None,
    }
}

fn decoded(hex: &str) -> Vec<u8> {
    hex.split("\\x")
        .skip(1)
        .map(|digits| u8::from_str_radix(digits, 16).expect("two digits"))
        .collect()
}

fn text(hex: &str) -> String {
    String::from_utf8_lossy(&decoded(hex)).into_owned()
}

/// The bytes of a file after power was lost, `None` when it is not there.
fn after_loss(events: &[Event], wanted: &str, random: &mut Random) -> Option<Vec<u8>> {
    let own = |event: &Event| match event {
        Event::Write { file, .. }
        | Event::Truncate { file, .. }
        | Event::Durable { file }
        | Event::Removed { file } => file == wanted,
        _ => false,
    };
    let durable =
        events.iter().rposition(|event| matches!(event, Event::Durable { file } if file == wanted));
    let mut bytes: Option<Vec<u8>> = None;
    for (place, event) in events.iter().enumerate().filter(|(_, event)| own(event)) {
        let sure = durable.is_some_and(|durable| place <= durable);
        let luck = if sure { 0 } else { random.below(3) };
        match event {
            Event::Write { offset, bytes: written, .. } if luck < 2 => {
                let bytes = bytes.get_or_insert_default();
                let length = match luck {
                    0 => written.len(),
                    // Torn: some sectors from its beginning.
                    _ => written.len().min(
                        random.below(written.len() as u64 / SECTOR as u64 + 1) as usize * SECTOR,
                    ),
                };
                bytes.resize(bytes.len().max(offset + length), 0);
                bytes[*offset..offset + length].copy_from_slice(&written[..length]);
            }
            Event::Truncate { length, .. } if luck < 2 => {
                bytes.get_or_insert_default().resize(*length, 0);
            }
            // The folder is not made durable by the file: a name may come back.
            Event::Removed { .. } if luck < 2 => bytes = None,
            _ => {}
        }
    }
    bytes
}

/// A folder as it may be after a crash: each file's bytes, by its path.
pub type Folder = BTreeMap<String, Vec<u8>>;

/// What the system had after these events, with nothing lost: as after a kill.
pub fn after_kill(events: &[Event]) -> Folder {
    replayed(events, &mut |_| 0)
}

/// What the disk may have after these events and a loss of power.
pub fn folder_after_loss(events: &[Event], random: &mut Random) -> Folder {
    replayed(events, &mut |choices| random.below(choices))
}

/// Applies events in order. What is not durable at the end is chosen by `luck`: 0 is as it was
/// written.
///
/// A name that was given or taken away is durable when its folder is; each may be lost by itself
/// otherwise.
fn replayed(events: &[Event], luck: &mut dyn FnMut(u64) -> u64) -> Folder {
    let parent =
        |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    // Which file each call was about: names change.
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut files = 0;
    let mut subject: Vec<Option<usize>> = Vec::new();
    let mut ends: BTreeMap<usize, usize> = BTreeMap::new();
    let mut offsets: BTreeMap<usize, usize> = BTreeMap::new();
    let mut durable_files: BTreeMap<usize, usize> = BTreeMap::new();
    let mut durable_folders: BTreeMap<String, usize> = BTreeMap::new();
    let mut all_durable = None;
    for (place, event) in events.iter().enumerate() {
        subject.push(match event {
            Event::Created { file } => Some(*names.entry(file.clone()).or_insert_with(|| {
                files += 1;
                files
            })),
            Event::Renamed { from, to } => {
                let file = names.remove(from);
                names.extend(file.map(|file| (to.clone(), file)));
                file
            }
            Event::Removed { file } => names.remove(file),
            Event::Write { file, .. } | Event::Truncate { file, .. } => names.get(file).copied(),
            Event::Appended { file, bytes } => names.get(file).map(|file| {
                let end = ends.entry(*file).or_default();
                offsets.insert(place, *end);
                *end += bytes.len();
                *file
            }),
            Event::Durable { file } => {
                durable_folders.insert(file.clone(), place);
                names.get(file).map(|file| {
                    durable_files.insert(*file, place);
                    *file
                })
            }
            Event::AllDurable => {
                all_durable = Some(place);
                None
            }
            Event::Acknowledged(_) => None,
        });
    }
    let sure = |place: usize, durable: Option<&usize>| {
        all_durable.max(durable.copied()).is_some_and(|last| place <= last)
    };
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut bytes: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        let Some(file) = subject[place] else { continue };
        let mut is_lost = |folder: &str| !sure(place, durable_folders.get(folder)) && luck(2) > 0;
        match event {
            Event::Created { file: path } if !is_lost(&parent(path)) => {
                names.insert(path.clone(), file);
            }
            Event::Renamed { from, to } if !is_lost(&parent(to)) => {
                names.remove(from);
                names.insert(to.clone(), file);
            }
            Event::Removed { file: path } if !is_lost(&parent(path)) => drop(names.remove(path)),
            Event::Write { bytes: written, .. } | Event::Appended { bytes: written, .. } => {
                let offset = match event {
                    Event::Write { offset, .. } => *offset,
                    _ => offsets[&place],
                };
                let luck = if sure(place, durable_files.get(&file)) { 0 } else { luck(3) };
                let length = match luck {
                    0 => written.len(),
                    1 => 0,
                    // Torn: some sectors of the file from its beginning.
                    _ => torn(offset, written.len()),
                };
                if length > 0 {
                    let bytes = bytes.entry(file).or_default();
                    bytes.resize(bytes.len().max(offset + length), 0);
                    bytes[offset..offset + length].copy_from_slice(&written[..length]);
                }
            }
            Event::Truncate { length, .. }
                if sure(place, durable_files.get(&file)) || luck(2) == 0 =>
            {
                bytes.entry(file).or_default().resize(*length, 0);
            }
            _ => {}
        }
    }
    names
        .into_iter()
        .map(|(path, file)| (path, bytes.get(&file).cloned().unwrap_or_default()))
        .collect()
}

/// Bytes of a write up to the last border of a sector in it.
fn torn(offset: usize, length: usize) -> usize {
    let border = (offset + length) / SECTOR * SECTOR;
    border.saturating_sub(offset).min(length)
}

/// What the child does to a folder; `None` when this system cannot trace it.
pub fn folder_events(variable: &str, folder: &Path) -> Option<Vec<Event>> {
    let place = tempfile::tempdir().expect("a folder");
    let events = notes(variable, folder, &place.path().join("notes"));
    if events.is_none() {
        skip();
    }
    let below = format!("{}/", folder.display());
    let is_there = |path: &str| path.starts_with(&below);
    let own = |event: &Event| match event {
        Event::Created { file }
        | Event::Write { file, .. }
        | Event::Appended { file, .. }
        | Event::Truncate { file, .. }
        | Event::Removed { file } => is_there(file),
        Event::Durable { file } => is_there(file) || Path::new(file) == folder,
        Event::Renamed { to, .. } => is_there(to),
        Event::AllDurable | Event::Acknowledged(_) => true,
    };
    Some(events?.into_iter().filter(own).collect())
}

/// Writes files below another folder than the one they were noted in.
pub fn lay_down(files: &Folder, noted: &Path, to: &Path) {
    for (path, bytes) in files {
        let path = to.join(Path::new(path).strip_prefix(noted).expect("within the folder"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
}

/// Counts the test as skipped, as this system cannot trace.
pub fn skip() {
    skipped("loss of power", "strace is not there, or may not trace; install the package strace");
}

/// The program that traces.
pub fn strace() -> Command {
    Command::new(std::env::var_os("ABREAST_TEST_STRACE").unwrap_or_else(|| "strace".into()))
}

/// The seed of a run.
pub fn seed() -> u64 {
    number("ABREAST_CRASH_SEED").unwrap_or(1)
}

/// How many instants a run tries: its own number, or another that was asked for.
pub fn losses(own: u64) -> u64 {
    number("ABREAST_POWER_LOSSES").unwrap_or(own)
}

/// Runs the test `child` under strace, then hands stores as they may be after loss of power at some
/// instant to `check`, with the last acknowledgement before that instant and words for its
/// messages.
pub fn lose_power(
    variable: &str,
    name: &str,
    losses: u64,
    acknowledgements: u64,
    check: &mut dyn FnMut(&Path, Option<u64>, &str),
) {
    let seed = seed();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let Some(events) = notes(variable, &path, &folder.path().join("notes")) else {
        skip();
        return;
    };
    let acknowledged =
        events.iter().filter(|event| matches!(event, Event::Acknowledged(_))).count();
    assert_eq!(acknowledged as u64, acknowledgements, "every acknowledgement was noted");
    let database = path.display().to_string();
    let files = [("", database.clone()), ("-wal", format!("{database}-wal"))];
    let first = events
        .iter()
        .position(|event| matches!(event, Event::Acknowledged(_)))
        .expect("one at least");
    let mut random = Random::new(seed);
    for loss in 0..self::losses(losses) {
        let until = first + 1 + random.below((events.len() - first) as u64) as usize;
        let before = &events[..until.min(events.len())];
        let promised = before.iter().rev().find_map(|event| match event {
            Event::Acknowledged(number) => Some(*number),
            _ => None,
        });
        let place = tempfile::tempdir().expect("a folder");
        let copy = place.path().join(name);
        for (suffix, file) in &files {
            if let Some(bytes) = after_loss(before, file, &mut random) {
                std::fs::write(format!("{}{suffix}", copy.display()), bytes).expect("written");
            }
        }
        let context = format!(
            "loss {loss} after {until} of {} notes, ABREAST_CRASH_SEED={seed}",
            events.len()
        );
        check(&copy, promised, &context);
    }
}
