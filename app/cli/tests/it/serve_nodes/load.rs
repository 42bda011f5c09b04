//! Changes that clients and programs make while nodes fail.

use super::nodes::{Client, NODES};
use crate::hub_nodes::subscribers::Subscribers;
use abreast_testkit::Random;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Pause between two changes of a writer.
const PAUSE: Duration = Duration::from_millis(40);
/// Writers pause while a subscriber is so many notifications behind.
const BEHIND: u64 = 100;

/// Records batches of this size, with names that have the number of the writer, until `stop` is set;
/// returns the names that were accepted.
pub(super) fn write_records(
    client: &Client,
    (writer, batch): (usize, usize),
    subscribers: &Subscribers,
    stop: &AtomicBool,
) -> Vec<String> {
    let (mut accepted, mut random) = (Vec::new(), Random::new(writer as u64 + 1));
    for number in 0.. {
        if stop.load(SeqCst) {
            break;
        }
        std::thread::sleep(PAUSE);
        if subscribers.is_behind(BEHIND) {
            continue;
        }
        let names =
            (0..batch).map(|part| format!("http://elsewhere.example/{writer}/{number}/{part}"));
        let names: Vec<String> = names.collect();
        let body = names.iter().fold(String::new(), |mut body, name| {
            let _ = writeln!(body, "{{\"uri\":\"{name}\",\"change\":\"created\"}}");
            body
        });
        let headers =
            format!("Content-Type: application/x-ndjson\r\nIdempotency-Key: {writer}-{number}\r\n");
        // A client whose request was not answered repeats it, at another node.
        loop {
            let node = random.below(NODES as u64) as usize;
            match client.ask(node, "POST /api/v1/sets/notes/changes", &headers, &body) {
                Some((200, _)) => break,
                Some((503, _)) | None => std::thread::sleep(PAUSE),
                Some(answer) => panic!("{answer:?}"),
            }
        }
        accepted.extend(names);
    }
    accepted
}

/// Creates, changes and removes files, until `stop` is set.
pub(super) fn write_files(folder: &Path, stop: &AtomicBool) {
    let mut random = Random::new(7);
    for number in 0_u64.. {
        if stop.load(SeqCst) {
            break;
        }
        let name = folder.join(format!("paper-{}.txt", random.below(40)));
        if random.below(5) == 0 {
            let _ = fs::remove_file(name);
        } else {
            replace(folder, &name, &format!("paper {number}\n"));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Changes the statements in a file of RDF, until `stop` is set.
pub(super) fn write_statements(folder: &Path, stop: &AtomicBool) {
    let mut random = Random::new(9);
    let mut names = [0_u64; 20];
    for number in 1.. {
        names[random.below(20) as usize] = number;
        let line = |person: usize| {
            let name = names[person];
            format!("<http://example.org/p/{person}> <http://example.org/p> \"{name}\" .\n")
        };
        let text = (0..20).map(line).collect::<Vec<_>>().concat();
        replace(folder, &folder.join("people.nt"), &text);
        if stop.load(SeqCst) {
            break;
        }
        std::thread::sleep(10 * PAUSE);
    }
}

fn replace(folder: &Path, name: &Path, text: &str) {
    let temporary = folder.join(".new");
    fs::write(&temporary, text).unwrap();
    fs::rename(temporary, name).unwrap();
}
