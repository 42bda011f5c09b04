//! Reading a folder of N-Quads back, for audits and checks.

use super::files::name_of;
use super::run::restore;
use crate::report::error::Error;
use crate::report::sinks::Graph;
use crate::sink::kept::{Damage, DamageKind, ReadBack};
use abreast_store::mirror::{Location, Mirror, Row};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Reads descriptions back.
#[derive(Debug)]
pub(crate) struct NQuadsKept {
    folder: PathBuf,
    graph: Graph,
    lengths: HashMap<i64, u64>,
    open: Option<(i64, File)>,
}

impl NQuadsKept {
    pub(crate) fn open(folder: &Path, mirror: &Mirror) -> Result<Self, Error> {
        let lengths = mirror.segments()?.into_iter().map(|segment| {
            let length = std::fs::metadata(folder.join(&segment.name));
            (segment.number, length.map_or(0, |metadata| metadata.len()))
        });
        Ok(Self {
            folder: folder.to_owned(),
            graph: Graph::of_state(mirror)?,
            lengths: lengths.collect(),
            open: None,
        })
    }

    fn read(&mut self, at: Location) -> io::Result<Vec<u8>> {
        if self.open.as_ref().is_none_or(|(number, _)| *number != at.segment) {
            let file = File::open(self.folder.join(name_of(at.segment)))?;
            self.open = Some((at.segment, file));
        }
        let (_, file) = self.open.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = vec![0; usize::try_from(at.length).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, at.offset)?;
        Ok(bytes)
    }

    /// The canonical lines of a description, if they are unchanged.
    pub(super) fn lines(&mut self, mirror: &Mirror, uri: &str) -> Option<Vec<u8>> {
        let at = mirror.packed(uri).ok()??.record;
        let (lines, header) = restore(&self.read(at).ok()?, self.graph.of(uri))?;
        (header.uri == uri).then_some(lines)
    }

    /// Whether the description in its file is unchanged.
    fn is_whole(&mut self, uri: &str, at: Location) -> bool {
        let Ok(bytes) = self.read(at) else { return false };
        restore(&bytes, self.graph.of(uri)).is_some_and(|(_, header)| header.uri == uri)
    }
}

impl ReadBack for NQuadsKept {
    fn keeps_bytes(&self) -> bool {
        false
    }

    fn damage(&mut self, mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error> {
        let damage = |kind, message: &str| Ok(Some(Damage { kind, message: message.to_owned() }));
        let at = mirror.packed(&row.uri)?.map(|packed| packed.record).filter(|at| {
            let end = at.offset.checked_add(at.length);
            self.lengths.get(&at.segment).zip(end).is_some_and(|(length, end)| end <= *length)
        });
        let Some(at) = at else {
            return damage(DamageKind::Missing, "its description is in no file");
        };
        if read && !self.is_whole(&row.uri, at) {
            return damage(DamageKind::Digest, "its description was altered in the file");
        }
        Ok(None)
    }
}
