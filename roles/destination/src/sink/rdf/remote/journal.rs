//! The journal of sent changes that are not yet in the database, and the entity of each stored
//! resource.
//!
//! The database records a change some time after the change was sent. After a crash in between, the
//! database would lack the added and the removed statements. So each change is written to a file
//! before it is sent: the next run repeats the change, and knows the reach of the blank nodes in
//! the stored statements.
//!
//! Stored statements are removed by the IRI of their entity. This is the URI of the resource, or
//! another IRI that the database contains, if the URI is the address of a document, as in
//! ResourceSync lists of entities.

use crate::copy::names::DATABASE;
use crate::copy::state_folder::{StateFolder, open_own};
use crate::copy::unusable::unusable;
use crate::report::error::{Error, ExitCode};
use crate::sink::kept::distrusted;
use crate::sink::rdf::remote::change::{Change, either, hex, packed, unpacked};
use abreast_rdf::sparql::Reach;
use abreast_store::mirror::{Mirror, Row};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::mem::take;
use std::path::PathBuf;

/// The file in the state folder. Each line has the URI of a resource, the IRI of the entity, the
/// digest of the new stored statements or `-`, a reach that covers the new and the previous
/// statements, and a digest of the line.
const FILE: &str = "sent";
/// Maximum length of a line, in bytes.
const LINE_BYTES: u64 = 1 << 20;

/// Changes of a transaction that may not be committed.
#[derive(Default)]
struct Recent {
    /// The entity of each resource, if its IRI differs from the URI; `None` also if nothing is
    /// stored.
    entities: HashMap<String, Option<String>>,
    /// The resource of each entity.
    resources: HashMap<String, String>,
}

/// Possible effects of a killed run, or of a refused update, on a resource.
#[derive(Default)]
struct Unsure {
    /// The versions that may be stored: the IRI of an entity, and the digest of its newest version.
    versions: Vec<(String, String)>,
    reach: Reach,
}

impl Unsure {
    fn add(&mut self, noted: &Noted<'_>) {
        self.reach = either(self.reach, noted.reach);
        let (entity, digest) = (noted.entity, noted.digest.to_owned());
        match self.versions.iter_mut().find(|(known, _)| known == entity) {
            Some(known) => known.1 = digest,
            None => self.versions.push((entity.to_owned(), digest)),
        }
    }

    fn entities(&self) -> impl Iterator<Item = &String> {
        self.versions.iter().map(|(entity, _)| entity)
    }
}

fn write_line(text: &mut String, uri: &str, entity: &str, digest: &str, reach: Reach) {
    let line = format!("{uri} {entity} {digest} {}", packed(reach));
    // Writing into memory cannot fail.
    let _ = writeln!(text, "{line} {}", check_of(&line));
}

/// The digest of a line.
fn check_of(line: &str) -> String {
    format!("b3:{}", hex(&blake3::hash(line.as_bytes()).as_bytes()[..8]))
}

/// A line of the file.
struct Noted<'l> {
    uri: &'l str,
    entity: &'l str,
    digest: &'l str,
    reach: Reach,
}

impl<'l> Noted<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let line = line.strip_suffix('\n')?;
        let mut fields = line.split(' ');
        let mut next = || fields.next();
        let (uri, entity, digest, reach) = (next()?, next()?, next()?, next()?);
        let reach = unpacked(reach.parse().ok()?);
        // Lines of earlier versions do not have a digest.
        let is_intact = fields.next().is_none_or(|check| {
            line.strip_suffix(check).is_some_and(|text| check == check_of(text.trim_end()))
        });
        (is_intact && fields.next().is_none()).then_some(Self { uri, entity, digest, reach })
    }

    /// Adds the change to the possible effects of the last run, unless the database has recorded
    /// the change. A reach also covers the version before.
    fn take_into(
        &self,
        unsure: &mut HashMap<String, Unsure>,
        mirror: &Mirror,
    ) -> Result<(), Error> {
        let is_recorded = match mirror.description(self.uri)? {
            None => self.digest == "-",
            Some(stored) => {
                hex(&stored.digest) == self.digest
                    && stored.entity.as_deref().unwrap_or(self.uri) == self.entity
            }
        };
        if is_recorded {
            unsure.remove(self.uri);
        } else {
            unsure.entry(self.uri.to_owned()).or_default().add(self);
        }
        Ok(())
    }
}

pub(super) struct Journal {
    /// A connection that reads the committed data.
    mirror: Mirror,
    state: StateFolder,
    path: PathBuf,
    now: Recent,
    before: Recent,
    unsure: HashMap<String, Unsure>,
    /// The newest line of each resource since the last settling.
    lines: HashMap<String, String>,
    /// Whether the file contains lines.
    is_begun: bool,
    /// The file has a line that cannot be read.
    is_damaged: bool,
}

impl Journal {
    /// Opens the journal. Resources with changes that are not in the database get rows that are not
    /// reliable, so that they are stored again, or deleted.
    pub(super) fn open(state: &StateFolder, mirror: &Mirror, epoch: i64) -> Result<Self, Error> {
        let (path, mut unsure, mut line) = (state.path().join(FILE), HashMap::new(), Vec::new());
        let unreadable = |cause: io::Error| unusable(&path, cause);
        let mut file = match state.open_file(FILE) {
            Some(file) => Some(BufReader::new(file.map_err(unreadable)?)),
            None => None,
        };
        let (mut is_begun, mut is_damaged) = (false, false);
        while let Some(file) = &mut file {
            line.clear();
            if file.take(LINE_BYTES).read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
                break;
            }
            is_begun = true;
            if line.len() as u64 == LINE_BYTES {
                return Err(unreadable(io::Error::other("it has a line without an end"))
                    .with_help("remove the file, then run with `--baseline --full`"));
            }
            if let Some(noted) = std::str::from_utf8(&line).ok().and_then(Noted::parse) {
                noted.take_into(&mut unsure, mirror)?;
            } else if line.ends_with(b"\n") {
                is_damaged = true;
            }
            // The last line may be incomplete; its change was not sent.
        }
        for uri in unsure.keys() {
            let new = || Row { uri: uri.clone(), epoch, ..Row::default() };
            mirror.put_row(&distrusted(&mirror.row(uri)?.unwrap_or_else(new)))?;
        }
        Ok(Self {
            mirror: Mirror::open_reader(&state.path().join(DATABASE))?,
            state: state.clone(),
            path,
            now: Recent::default(),
            before: Recent::default(),
            unsure,
            lines: HashMap::new(),
            is_begun,
            is_damaged,
        })
    }

    /// The reason why the last sent changes are not known, if the file is damaged.
    pub(super) fn damage(&self) -> Option<String> {
        let path = self.path.display();
        self.is_damaged
            .then(|| format!("{path} is damaged, so that what was sent last is not known"))
    }

    /// The entities that are, or may be, stored of a resource of the copy.
    pub(super) fn entities(&self, change: &Change) -> Result<Vec<String>, Error> {
        let uri = change.uri.as_str();
        let mut all = Vec::new();
        if change.is_kept {
            let recent =
                [&self.now, &self.before].into_iter().find_map(|all| all.entities.get(uri));
            let stored = match recent {
                Some(entity) => Some(entity.clone()),
                None => self.mirror.description(uri)?.map(|stored| stored.entity),
            };
            // A repair may have lost the entity.
            let known = stored.or_else(|| (!self.is_unsure(uri)).then_some(None));
            all.extend(known.map(|entity| entity.unwrap_or_else(|| uri.to_owned())));
        }
        for entity in self.unsure.get(uri).into_iter().flat_map(Unsure::entities) {
            if !all.contains(entity) {
                all.push(entity.clone());
            }
        }
        Ok(all)
    }

    /// The reach of the blank nodes in the stored statements of a resource, if a killed run may
    /// have changed them.
    pub(super) fn unsure_reach(&self, uri: &str) -> Option<Reach> {
        self.unsure.get(uri).map(|unsure| unsure.reach)
    }

    /// Whether a killed run may have changed the stored statements of an entity.
    pub(super) fn may_have_changed(&self, entity: &str) -> bool {
        self.unsure.values().flat_map(Unsure::entities).any(|known| known == entity)
    }

    fn is_unsure(&self, uri: &str) -> bool {
        self.unsure.contains_key(uri)
    }

    /// The resource that an entity is stored of.
    pub(super) fn resource(&self, entity: &str) -> Result<Option<String>, Error> {
        let all = [&self.now, &self.before];
        if let Some(uri) = all.iter().find_map(|recent| recent.resources.get(entity)) {
            return Ok(Some(uri.clone()));
        }
        let is_recent = |uri: &String| all.iter().any(|recent| recent.entities.contains_key(uri));
        Ok(self.mirror.describer(entity)?.filter(|uri| !is_recent(uri)))
    }

    /// Writes changes durably before they are sent, each with a reach that covers both versions.
    pub(super) fn note<'c>(
        &mut self,
        changes: impl Iterator<Item = (&'c Change, Reach)>,
    ) -> Result<(), Error> {
        let mut text = String::new();
        for (change, reach) in changes {
            let (entity, digest) = if let Some(new) = &change.new {
                (change.entity().to_owned(), hex(&new.digest))
            } else {
                let entity = self.entities(change)?.into_iter().next();
                (entity.unwrap_or_else(|| change.uri.clone()), "-".to_owned())
            };
            let begin = text.len();
            write_line(&mut text, &change.uri, &entity, &digest, reach);
            self.lines.insert(change.uri.clone(), text[begin..].to_owned());
        }
        self.is_begun = true;
        let mut options = OpenOptions::new();
        open_own(options.append(true).create(true), &self.path)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_data()
            })
            .map_err(|cause| {
                Error::new("io", ExitCode::Io, format!("cannot write {}", self.path.display()))
                    .with_cause(cause)
            })
    }

    /// A change was refused. If it was sent, it may have been carried out all the same: its line stays
    /// until the resource is stored, and the next run does not trust the row.
    pub(super) fn refused(&mut self, change: &Change) {
        if let Some(line) = self.lines.remove(&change.uri)
            && let Some(noted) = Noted::parse(&line)
        {
            self.unsure.entry(change.uri.clone()).or_default().add(&noted);
        }
    }

    /// A change was carried out.
    pub(super) fn done(&mut self, change: &Change) {
        self.unsure.remove(&change.uri);
        let mut other = None;
        if change.new.is_some() {
            let entity = change.entity();
            self.now.resources.insert(entity.to_owned(), change.uri.clone());
            other = (entity != change.uri).then(|| entity.to_owned());
        }
        self.now.entities.insert(change.uri.clone(), other);
    }

    /// Called after all changes were passed to the database; changes that were passed before the
    /// last call are now committed.
    pub(super) fn settled(&mut self) -> Result<(), Error> {
        self.before = take(&mut self.now);
        let lines = take(&mut self.lines);
        if !self.is_begun {
            return Ok(());
        }
        // After a power failure, each change is in the database or in this file.
        self.mirror.sync()?;
        let mut text: String = lines.into_values().collect();
        for (uri, Unsure { versions, reach }) in &self.unsure {
            for (entity, digest) in versions {
                write_line(&mut text, uri, entity, digest, *reach);
            }
        }
        self.is_begun = !text.is_empty();
        self.state.replace_bytes(FILE, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_store::mirror::Described;

    fn opened(text: &[&[u8]]) -> (tempfile::TempDir, Result<Journal, Error>, Mirror) {
        let place = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(place.path().join(FILE)).unwrap();
        for bytes in text {
            file.write_all(bytes).unwrap();
        }
        let mirror = Mirror::open(&place.path().join(DATABASE)).unwrap();
        let stored = Described { digest: vec![0xab], entity: None };
        mirror.set_description("http://h/kept", Some(&stored)).unwrap();
        let state = StateFolder::at(place.path()).unwrap();
        let journal = Journal::open(&state, &mirror, 1);
        (place, journal, mirror)
    }

    #[test]
    fn what_the_state_does_not_have_is_unsure() {
        let text = "http://h/a http://h/a 01 0\n\
                    http://h/kept http://h/kept 02 0\n\
                    http://h/a http://id/a 03 0\n\
                    http://h/kept http://h/kept ab 0\n\
                    http://h/gone http://h/gone 04 0\n\
                    http://h/gone http://h/gone - 0\n\
                    \u{0}\u{0} torn\n\
                    http://h/torn http://h/to";
        let (_place, journal, mirror) = opened(&[text.as_bytes()]);
        let journal = journal.unwrap();
        let unsure: Vec<&String> = journal.unsure.keys().collect();
        assert_eq!(unsure, ["http://h/a"]);
        let entities: Vec<&String> = journal.unsure["http://h/a"].entities().collect();
        assert_eq!(entities, ["http://h/a", "http://id/a"]);
        assert!(journal.may_have_changed("http://id/a"));
        assert!(!journal.may_have_changed("http://h/kept"));
        assert_eq!(mirror.count_rows().unwrap(), 1);
    }

    #[test]
    fn a_flipped_bit_in_a_journal_is_noticed() {
        let mut text = String::new();
        for uri in ["http://h/a", "http://h/b"] {
            write_line(&mut text, uri, uri, "01", Reach::default());
        }
        let journal = opened(&[text.as_bytes()]).1.unwrap();
        assert!(journal.damage().is_none() && journal.unsure.len() == 2);
        for bit in 0..text.len() * 8 {
            let mut damaged = text.clone().into_bytes();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let journal = opened(&[&damaged]).1.unwrap();
            // A last line without its end counts as interrupted.
            assert!(journal.damage().is_some() || bit / 8 == text.len() - 1, "bit {bit}");
            assert!(journal.unsure.keys().all(|uri| text.contains(&**uri)), "bit {bit}");
        }
    }

    #[test]
    fn a_journal_of_any_length_is_read_to_its_end() {
        // More than would fit into memory is read a line at a time.
        let mut other = vec![b'x'; LINE_BYTES as usize - 2];
        other.push(b'\n');
        let mut text: Vec<&[u8]> = vec![&other; 270];
        text.push(b"http://h/a http://h/a 01 0\n");
        assert!(opened(&text).1.unwrap().is_unsure("http://h/a"));
        // A file that is not a journal is not treated as an empty journal.
        let error = opened(&[&vec![b'x'; LINE_BYTES as usize + 1]]).1.err().unwrap();
        assert!(error.to_string().contains("without an end"), "{error}");
        assert!(error.help().unwrap().contains("--baseline --full"));
    }

    #[test]
    fn what_is_refused_again_and_again_has_one_line() {
        let (place, journal, _mirror) = opened(&[]);
        let mut journal = journal.unwrap();
        let uri = "http://h/a";
        for _ in 0..5 {
            let change =
                Change { uri: uri.to_owned(), is_kept: true, old: None, new: None, row: None };
            journal.note([(&change, Reach::default())].into_iter()).unwrap();
            journal.refused(&change);
            journal.settled().unwrap();
        }
        let text = std::fs::read_to_string(place.path().join(FILE)).unwrap();
        assert!(text.starts_with("http://h/a http://h/a - 0 ") && text.lines().count() == 1);
        assert!(journal.may_have_changed(uri));
    }
}
