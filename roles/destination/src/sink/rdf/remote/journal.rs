//! What was sent before the state has it, and which entity is stored of each resource.
//!
//! The state has the rows of a change some time after it was sent. A run that is killed in between
//! would neither know of what it added nor of what it removed, so every change is noted in a file
//! before it is sent: the next run does it again, and knows how far the blank nodes may reach of what
//! is stored.
//!
//! What is stored is removed by the IRI of its entity. That is the URI of the resource or, where this
//! is the address of a document, as ResourceSync lists entities, another one, which the state keeps.

use super::{Change, either, packed, unpacked};
use crate::error::{Error, ExitCode};
use crate::sink::kept::distrusted;
use crate::state::DATABASE;
use crate::state_folder::{StateFolder, open_own};
use abreast_rdf::sparql::Reach;
use abreast_store::mirror::{Mirror, Row};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::mem::take;
use std::path::PathBuf;

/// The file in the state. Each line has the URI of a resource, the IRI of the entity, the digest of
/// what is stored of it from now on, or `-`, and a reach that is enough for this and what was stored.
const FILE: &str = "sent";
/// What is read of it: far more than two transactions have.
const FILE_BYTES: u64 = 256 << 20;

/// What was stored in a transaction that may not be committed.
#[derive(Default)]
struct Recent {
    /// The entity of each resource, where that is another IRI; `None` also when nothing is stored.
    entities: HashMap<String, Option<String>>,
    /// The resource of each entity.
    resources: HashMap<String, String>,
}

/// What a killed run may have done about a resource.
#[derive(Default)]
struct Unsure {
    entities: Vec<String>,
    reach: Reach,
    lines: String,
    is_recorded: bool,
}

pub(super) struct Journal {
    /// What is committed.
    mirror: Mirror,
    state: StateFolder,
    path: PathBuf,
    now: Recent,
    before: Recent,
    unsure: HashMap<String, Unsure>,
    /// The newest line of each resource since the last settling.
    lines: HashMap<String, String>,
    /// Whether the file has any.
    is_begun: bool,
}

impl Journal {
    /// Opens the journal. Resources of which the last run did more than the state knows get rows
    /// that are not trusted, so that they are stored again, or deleted.
    pub(super) fn open(state: &StateFolder, mirror: &Mirror, epoch: i64) -> Result<Self, Error> {
        let noted = state.read_text(FILE, FILE_BYTES).unwrap_or_default();
        let mut unsure: HashMap<String, Unsure> = HashMap::new();
        // The last line may be incomplete: nothing was sent of it.
        for line in noted.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let [uri, entity, digest, reach] = line.split(' ').collect::<Vec<_>>()[..] else {
                continue;
            };
            let of_uri = unsure.entry(uri.to_owned()).or_default();
            of_uri.reach = either(of_uri.reach, unpacked(reach.parse().unwrap_or_default()));
            let _ = writeln!(of_uri.lines, "{line}");
            if !of_uri.entities.iter().any(|known| known == entity) {
                of_uri.entities.push(entity.to_owned());
            }
            of_uri.is_recorded = match mirror.description(uri)? {
                None => digest == "-",
                Some(stored) => {
                    hex(&stored.digest) == digest
                        && stored.entity.as_deref().unwrap_or(uri) == entity
                }
            };
        }
        unsure.retain(|_, of_uri| !of_uri.is_recorded);
        for uri in unsure.keys() {
            let new = || Row { uri: uri.clone(), epoch, ..Row::default() };
            mirror.put_row(&distrusted(&mirror.row(uri)?.unwrap_or_else(new)))?;
        }
        Ok(Self {
            mirror: Mirror::open_reader(&state.path().join(DATABASE))?,
            state: state.clone(),
            path: state.path().join(FILE),
            now: Recent::default(),
            before: Recent::default(),
            unsure,
            lines: HashMap::new(),
            is_begun: !noted.is_empty(),
        })
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
            // A repair may have lost which one it is.
            let known = stored.or_else(|| (!self.is_unsure(uri)).then_some(None));
            all.extend(known.map(|entity| entity.unwrap_or_else(|| uri.to_owned())));
        }
        for entity in self.unsure.get(uri).into_iter().flat_map(|unsure| &unsure.entities) {
            if !all.contains(entity) {
                all.push(entity.clone());
            }
        }
        Ok(all)
    }

    /// How far the blank nodes may reach of what is stored of a resource, where a killed run may have
    /// changed that.
    pub(super) fn unsure_reach(&self, uri: &str) -> Option<Reach> {
        self.unsure.get(uri).map(|unsure| unsure.reach)
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

    /// Notes changes durably, before they are sent, each with a reach that is enough for both
    /// versions.
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
            // Writing into memory cannot fail.
            let begin = text.len();
            let _ = writeln!(text, "{} {entity} {digest} {}", change.uri, packed(reach));
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

    /// A change was refused: what was stored before is.
    pub(super) fn refused(&mut self, change: &Change) {
        self.lines.remove(&change.uri);
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

    /// Everything before is given to the state, and what was given before is committed.
    pub(super) fn settled(&mut self) -> Result<(), Error> {
        self.before = take(&mut self.now);
        let lines = take(&mut self.lines);
        if !self.is_begun {
            return Ok(());
        }
        let mut text: String = lines.into_values().collect();
        self.unsure.values().for_each(|unsure| text.push_str(&unsure.lines));
        self.is_begun = !text.is_empty();
        self.state.replace_text(FILE, &text)
    }
}

fn hex(digest: &[u8]) -> String {
    let mut text = String::with_capacity(2 * digest.len());
    for byte in digest {
        // Writing into memory cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
