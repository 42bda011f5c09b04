//! What is at the place of a resource already.

use super::FolderWriter;
use crate::copy::path_map::Form;
use crate::copy::place::{NoPlace, Place};
use crate::report::failure::Failure;
use crate::request::verify::{Verdict, hash_file, judge};
use crate::sink::{Found, via};
use abreast_folder::ErrorKind;
use abreast_store::mirror::{PendingAction, Row, Task};
use abreast_webtypes::Digests;

impl FolderWriter {
    pub(super) fn look_at(&mut self, task: &Task) -> Result<Found, Failure> {
        let copy = &self.sink.copy;
        let (item, row) = (&task.pending, task.row.as_ref());
        let nothing = if row.is_some() { Found::Gone } else { Found::AsKept };
        let place = match copy.place_of(&item.uri, row, &mut self.last) {
            Err(NoPlace::Refused(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok(nothing);
            }
            place => place?,
        };
        let Some(found) = place.found else {
            if self.sink.republish && !self.sink.is_dry() {
                // The file of links is written before its file, and deleted after its file.
                via::remove(&place)?;
            }
            return Ok(nothing);
        };
        if let Some(row) = row.filter(|row| copy.is_as_written(row, &found)) {
            let leaf = place.form == Form::Leaf;
            return Ok(if leaf == row.leaf {
                Found::AsKept
            } else {
                Found::Other(Row { leaf, ..row.clone() })
            });
        }
        let has = |digests: &[u8], length: u64| -> Result<bool, Failure> {
            let mut wanted = Digests::default();
            wanted.set_from_bytes(digests);
            if found.size != length || wanted.strongest().is_none() {
                return Ok(false);
            }
            let (mut file, _) = place.dir.open_read(place.name())?;
            Ok(hash_file(&mut file, &wanted)?.0.agree(&wanted) == Some(true))
        };
        // The stored bytes, with another time.
        if let Some(row) = row
            && has(&row.digests, row.length)?
        {
            return Ok(Found::Other(Row { file_mtime: found.mtime_ns, ..row.clone() }));
        }
        let of_listed_time =
            || item.modified.is_some_and(|micros| copy.system.has_time(micros, found.mtime_ns));
        let is_planned = if item.digests.is_empty() {
            item.length == Some(found.size) && of_listed_time()
        } else {
            has(&item.digests, item.length.unwrap_or(found.size))?
        };
        if item.action != PendingAction::Fetch || !is_planned {
            return Ok(Found::AsKept);
        }
        Ok(Found::Other(Row {
            leaf: place.form == Form::Leaf,
            file_mtime: found.mtime_ns,
            ..crate::sink::row_as_planned(task, found.size, self.sink.epoch)
        }))
    }

    /// Whether the current file already exists, written by this copy or by somebody else.
    pub(super) fn already_right(
        &self,
        task: &Task,
        listed: &Digests,
        place: &mut Place,
    ) -> Result<Option<Row>, Failure> {
        let (item, Some(found)) = (&task.pending, place.found) else { return Ok(None) };
        if let Some(row) = &task.row
            && self.sink.copy.is_as_written(row, &found)
        {
            return if crate::sink::is_right(task, row, listed) {
                self.with_time(task, row.clone(), place).map(Some)
            } else {
                Ok(None)
            };
        }
        if listed.strongest().is_none() || item.length.is_some_and(|length| length != found.size) {
            return Ok(None);
        }
        let (mut file, _) = place.dir.open_read(place.name())?;
        let (digests, length) = hash_file(&mut file, listed)?;
        if judge(listed, item.length, &digests, length) != Verdict::Verified {
            return Ok(None);
        }
        let row = Row {
            uri: item.uri.clone(),
            leaf: place.form == Form::Leaf,
            length,
            digests: digests.to_bytes(),
            file_mtime: found.mtime_ns,
            verified: true,
            epoch: self.sink.epoch,
            ..Row::default()
        };
        self.with_time(task, row, place).map(Some)
    }
}
