//! Reading a packed copy back, for audits.

use super::archive_of;
use crate::report::error::Error;
use crate::request::verify::Hasher;
use crate::sink::kept::{Damage, DamageKind, ReadBack, same_bytes};
use abreast_store::mirror::{Location, Mirror, Row};
use abreast_warc::{CountingReader, Kind, ReadError, read_record, skip_http_head};
use abreast_webtypes::Digests;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Reads records back.
#[derive(Debug)]
pub(crate) struct WarcKept {
    folder: PathBuf,
    names: HashMap<i64, (String, u64)>,
    open: Option<(i64, File)>,
}

impl WarcKept {
    pub(crate) fn open(folder: &Path, mirror: &Mirror) -> Result<Self, Error> {
        let folder = archive_of(folder);
        let names = mirror
            .segments()?
            .into_iter()
            .map(|segment| {
                let length = std::fs::metadata(folder.join(&segment.name))
                    .map_or(0, |metadata| metadata.len());
                (segment.number, (segment.name, length))
            })
            .collect();
        Ok(Self { folder, names, open: None })
    }

    fn place(mirror: &Mirror, uri: &str) -> Result<Option<Location>, Error> {
        Ok(mirror.packed(uri)?.map(|packed| packed.bytes_at()))
    }

    fn file(&mut self, segment: i64) -> std::io::Result<&mut File> {
        if self.open.as_ref().is_none_or(|(number, _)| *number != segment) {
            let (name, _) = self.names.get(&segment).ok_or(std::io::ErrorKind::NotFound)?;
            self.open = Some((segment, File::open(self.folder.join(name))?));
        }
        let (_, file) = self.open.as_mut().ok_or(std::io::ErrorKind::NotFound)?;
        Ok(file)
    }

    fn read(&mut self, at: Location, hasher: &mut Hasher) -> Result<u64, ReadError> {
        let file = self.file(at.segment).map_err(ReadError::Io)?;
        file.seek(SeekFrom::Start(at.offset)).map_err(ReadError::Io)?;
        let mut input = BufReader::new(file.take(at.length));
        let mut read = read_record(&mut input)?.ok_or(ReadError::Syntax("there is no record"))?;
        if read.head.kind() == Some(Kind::Response) {
            skip_http_head(&mut read.block)?;
        }
        let mut block = vec![0; 64 << 10];
        let mut length = 0;
        loop {
            let count = read.block.read(&mut block)?;
            if count == 0 {
                return Ok(length);
            }
            hasher.update(&block[..count]);
            length += count as u64;
        }
    }
}

/// Length of the complete records of a file, in bytes; 0 if the file is missing.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn whole_length(path: &Path) -> std::io::Result<u64> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        file => file?,
    };
    let mut input = CountingReader::new(BufReader::with_capacity(256 << 10, file));
    loop {
        let begin = input.taken;
        match read_record(&mut input)
            .and_then(|read| read.map(|read| read.block.finish()).transpose())
        {
            Ok(Some(())) => {}
            Err(ReadError::Io(error)) => return Err(error),
            Ok(None) | Err(_) => return Ok(begin),
        }
    }
}

impl ReadBack for WarcKept {
    fn damage(&mut self, mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error> {
        let is_there = |at: Location| {
            self.names.get(&at.segment).is_some_and(|(_, length)| at.offset + at.length <= *length)
        };
        let packed = mirror.packed(&row.uri)?;
        if !packed.is_some_and(|packed| is_there(packed.record) && is_there(packed.bytes_at())) {
            let message = "its record is in no segment".to_owned();
            return Ok(Some(Damage { kind: DamageKind::Missing, message }));
        }
        let mut digests = Digests::default();
        digests.set_from_bytes(&row.digests);
        if !read || digests.strongest().is_none() {
            return Ok(None);
        }
        let found = self.digests(mirror, row, &digests)?;
        let message = || "its record has other bytes than were written".to_owned();
        let is_same = same_bytes(row, &digests, found.as_ref());
        Ok((!is_same).then(|| Damage { kind: DamageKind::Digest, message: message() }))
    }

    fn digests(
        &mut self,
        mirror: &Mirror,
        row: &Row,
        listed: &Digests,
    ) -> Result<Option<(Digests, u64)>, Error> {
        let Some(at) = Self::place(mirror, &row.uri)? else { return Ok(None) };
        let mut hasher = Hasher::for_listed(listed);
        // A record that cannot be read counts as missing.
        Ok(self.read(at, &mut hasher).ok().map(|length| (hasher.finish(), length)))
    }
}
