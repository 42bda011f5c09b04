//! Record of the copies: a small text file, rewritten after each copy.

use super::copies::{Part, Snapshot};
use abreast_core::{Position, ShardId};
use abreast_folder::{read_sealed, write_sealed};
use abreast_webtypes::Timestamp;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

pub(super) const NAME: &str = "record";
const FIRST_LINE: &str = "abreast-archive 1";

/// Stored copies of one set's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) snapshots: Vec<Snapshot>,
}

impl Record {
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let place = folder.join(NAME);
        let damaged = |what: String| {
            let message = format!("`{}` is damaged: {what}", place.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        let text = match read_sealed(&place) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(damaged(error.to_string()));
            }
            Err(error) => return Err(error),
        };
        parse(&String::from_utf8_lossy(&text)).map_err(|line| damaged(format!("line {line}")))
    }

    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        write_sealed(&folder.join(NAME), self.to_text().into_bytes())
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        for snapshot in &self.snapshots {
            let completed =
                snapshot.completed.map_or_else(|| "-".to_owned(), |at| at.as_micros().to_string());
            let _ = writeln!(
                text,
                "list {} {} {completed} {} {}",
                snapshot.number,
                snapshot.at.as_micros(),
                snapshot.taken.as_micros(),
                snapshot.position.0
            );
            for part in &snapshot.parts {
                let _ = writeln!(
                    text,
                    "part {} {} {} {}",
                    part.shard.0,
                    part.version.0,
                    part.number,
                    part.time.as_micros()
                );
            }
        }
        text
    }
}

/// Parses the text of a record; the error is the number of a line.
pub(super) fn parse(text: &str) -> Result<Record, usize> {
    let mut record = Record::default();
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
        return Err(1);
    }
    for (place, line) in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let understood = match words.as_slice() {
            ["list", number, at, completed, taken, position] => {
                snapshot([number, at, completed, taken, position])
                    .map(|snapshot| record.snapshots.push(snapshot))
            }
            ["part", shard, version, number, time] => {
                let last = record.snapshots.last_mut();
                part([shard, version, number, time])
                    .zip(last)
                    .map(|(part, last)| last.parts.push(part))
            }
            _ => None,
        };
        understood.ok_or(place + 1)?;
    }
    Ok(record)
}

fn snapshot([number, at, completed, taken, position]: [&str; 5]) -> Option<Snapshot> {
    Some(Snapshot {
        number: number.parse().ok()?,
        at: time(at)?,
        completed: if completed == "-" { None } else { Some(time(completed)?) },
        taken: time(taken)?,
        position: Position(position.parse().ok()?),
        parts: Vec::new(),
    })
}

fn part([shard, version, number, time_text]: [&str; 4]) -> Option<Part> {
    Some(Part {
        shard: ShardId(shard.parse().ok()?),
        version: Position(version.parse().ok()?),
        number: number.parse().ok()?,
        time: time(time_text)?,
    })
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(Timestamp::from_micros)
}

/// Number of a list, from the name of the file.
pub(super) fn list_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("list-")?.strip_suffix(".xml.gz")?.parse().ok()?;
    (list_name(number) == name).then_some(number)
}

pub(super) fn list_name(number: u64) -> String {
    format!("list-{number}.xml.gz")
}

pub(super) fn part_name(part: &Part) -> String {
    format!("part-{}-{}-{}.xml.gz", part.shard.0, part.version.0, part.number)
}

/// Whether a file name has the form of a list, a part or the record.
pub(super) fn is_own_name(name: &str) -> bool {
    let numbers = |rest: &str, count: usize| {
        rest.split('-').count() == count
            && rest
                .split('-')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    name == NAME
        || name.strip_suffix(".xml.gz").is_some_and(|name| {
            name.strip_prefix("list-").is_some_and(|rest| numbers(rest, 1))
                || name.strip_prefix("part-").is_some_and(|rest| numbers(rest, 3))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_record_reads_back_and_a_damaged_one_is_reported() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(place.path()).unwrap(), Record::default());
        let at = Timestamp::from_micros;
        let part = Part { shard: ShardId(3), version: Position(9), number: 1, time: at(70) };
        let one = Snapshot {
            number: 1,
            at: at(80),
            completed: None,
            taken: at(90),
            position: Position(9),
            parts: vec![part, Part { shard: ShardId(4), ..part }],
        };
        let two = Snapshot { number: 2, completed: Some(at(99)), parts: Vec::new(), ..one.clone() };
        let record = Record { snapshots: vec![one, two] };
        record.write(place.path()).unwrap();
        assert_eq!(Record::read(place.path()).unwrap(), record);
        assert!(is_own_name(&part_name(&part)) && is_own_name(&list_name(7)));
        for other in [
            "record.txt",
            "list-.xml.gz",
            "list-x.xml.gz",
            "part-1-2.xml.gz",
            "list-1.xml",
            "note.txt",
        ] {
            assert!(!is_own_name(other), "{other}");
        }
        fs::write(place.path().join(NAME), "abreast-archive 1\npart 1 2 3 4\n").unwrap();
        assert!(Record::read(place.path()).unwrap_err().to_string().contains("line 2"));
    }
}
