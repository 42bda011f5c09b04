//! What may a disk hold after power was lost? Made from the notes of `strace`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const SECTOR: usize = 512;

/// What happened, in order.
enum Event {
    Write { file: String, offset: usize, bytes: Vec<u8> },
    Truncate { file: String, length: usize },
    Durable { file: String },
    Removed { file: String },
    Acknowledged(u64),
}

/// Runs the test `child` of this program under strace, told by a variable which store to write; `None` when this system
/// cannot.
fn notes(variable: &str, path: &Path, notes: &Path) -> Option<Vec<Event>> {
    let strace = std::env::var_os("ABREAST_TEST_STRACE").unwrap_or_else(|| "strace".into());
    let status = Command::new(strace)
        .args(["-f", "-qq", "-xx", "-y", "-s", "1000000", "-e", "signal=none"])
        .args(["-e", "trace=pwrite64,write,ftruncate,fdatasync,fsync,unlink,unlinkat,rename,renameat2", "-o"])
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
            events.extend(event(begun).filter(|event| !matches!(event, Event::Durable { .. })));
        } else if call.starts_with("<... ") {
            // Durable only when the call has returned.
            let begun = unfinished.remove(thread)?;
            events.extend(event(begun).filter(|event| matches!(event, Event::Durable { .. })));
        } else {
            events.extend(event(call));
        }
    }
    Some(events)
}

fn event(call: &str) -> Option<Event> {
    let (name, arguments) = call.split_once('(')?;
    let file = || arguments.split_once('<')?.1.split_once('>').map(|(name, _)| text(name));
    let string = || arguments.split_once('"')?.1.split_once('"').map(|(string, rest)| (decoded(string), rest));
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
            let told = String::from_utf8(bytes).ok()?;
            told.strip_prefix("ack ")?.trim().parse().ok().map(Event::Acknowledged)
        }
        "ftruncate" => {
            let length = *numbers(arguments.split_once('>')?.1).first()?;
            Some(Event::Truncate { file: file()?, length })
        }
        "fdatasync" | "fsync" => Some(Event::Durable { file: file()? }),
        "unlink" | "unlinkat" => Some(Event::Removed { file: String::from_utf8(string()?.0).ok()? }),
        _ => None,
    }
}

fn decoded(hex: &str) -> Vec<u8> {
    hex.split("\\x").skip(1).map(|digits| u8::from_str_radix(digits, 16).expect("two digits")).collect()
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
        Event::Acknowledged(_) => false,
    };
    let durable = events.iter().rposition(|event| matches!(event, Event::Durable { file } if file == wanted));
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
                    _ => written.len().min(random.below(written.len() as u64 / SECTOR as u64 + 1) as usize * SECTOR),
                };
                bytes.resize(bytes.len().max(offset + length), 0);
                bytes[*offset..offset + length].copy_from_slice(&written[..length]);
            }
            Event::Truncate { length, .. } if luck < 2 => bytes.get_or_insert_default().resize(*length, 0),
            // The folder is not made durable by the file: a name may come back.
            Event::Removed { .. } if luck < 2 => bytes = None,
            _ => {}
        }
    }
    bytes
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A number of the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok())
}

/// Runs the child, then looks at stores as they may be after power was lost at some instant: `look` is given the
/// store, the last acknowledgement before that instant, and words for its messages.
pub(crate) fn lose_power(
    variable: &str,
    name: &str,
    losses: u64,
    acknowledgements: u64,
    look: &mut dyn FnMut(&Path, Option<u64>, &str),
) {
    let seed = number("ABREAST_CRASH_SEED").unwrap_or(1);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let Some(events) = notes(variable, &path, &folder.path().join("notes")) else {
        let line = "loss of power: strace is not there, or may not trace; install the package strace\n";
        if let Some(log) = std::env::var_os("ABREAST_TEST_SKIP_LOG") {
            let mut log = std::fs::File::options().append(true).create(true).open(log).expect("the log opens");
            log.write_all(line.as_bytes()).expect("noted");
        }
        eprint!("skipped: {line}");
        return;
    };
    let acknowledged = events.iter().filter(|event| matches!(event, Event::Acknowledged(_))).count();
    assert_eq!(acknowledged as u64, acknowledgements, "every acknowledgement was noted");
    let database = path.display().to_string();
    let files = [("", database.clone()), ("-wal", format!("{database}-wal"))];
    let first = events.iter().position(|event| matches!(event, Event::Acknowledged(_))).expect("one at least");
    let mut random = Random(seed);
    for loss in 0..number("ABREAST_POWER_LOSSES").unwrap_or(losses) {
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
        let context = format!("loss {loss} after {until} of {} notes, ABREAST_CRASH_SEED={seed}", events.len());
        look(&copy, promised, &context);
    }
}
