//! Rendering of an entity in one of its forms.

use super::entity::{Entity, EntityChange, Form};
use super::page::entity_page;
use crate::publish::{PublishedSet, Publisher, Reader};
use abreast_core::{ChangeLog, Kind, Order, Position, Version};
use abreast_rdf::{Syntax, WriteOptions, difference};
use abreast_webtypes::Timestamp;
use std::io::{self, Read as _};
use std::ops::ControlFlow;

/// Changes of an entity that are read with it.
const CHANGES: usize = 10;
/// Bytes of earlier descriptions that are read for them.
const CHANGES_BYTES: u64 = 1 << 20;

/// Whether a version is the first after the entity was created or added.
fn is_creation(log: &dyn ChangeLog, set: &PublishedSet, version: &Version) -> io::Result<bool> {
    let Some(before) = version.position.0.checked_sub(1) else { return Ok(true) };
    let mut kind = None;
    log.read(set.id, Position(before), &mut |record| {
        kind = (record.position == version.position).then_some(record.kind);
        ControlFlow::Break(())
    })
    .map_err(io::Error::other)?;
    Ok(matches!(kind, Some(Kind::Create | Kind::Add)))
}

impl Entity {
    /// Last changes of the entity, the newest first; empty if the set does not store versions.
    fn changes(&self, log: &dyn ChangeLog, set: &PublishedSet) -> io::Result<Vec<EntityChange>> {
        if set.versions.is_none() {
            return Ok(Vec::new());
        }
        let (newest, most) = (Order::NewestFirst, CHANGES + 1);
        let versions = log
            .versions(set.id, &self.iri, Timestamp::MAX, newest, most)
            .map_err(io::Error::other)?;
        let mut left = CHANGES_BYTES;
        let mut read = |version: Option<&Version>| -> io::Result<Option<Vec<u8>>> {
            let Some(version) = version else { return Ok(None) };
            let Some(state) = &version.state else { return Ok(Some(Vec::new())) };
            let length = state.length.unwrap_or_default();
            if length > left {
                left = 0;
                return Ok(None);
            }
            left -= length;
            let Some(mut kept) = set.representations.open_kept(state)? else { return Ok(None) };
            let mut lines = Vec::with_capacity(length as usize);
            kept.read_to_end(&mut lines)?;
            Ok(Some(lines))
        };
        let mut changes = Vec::with_capacity(versions.len());
        let mut after = read(versions.first())?;
        for (at, version) in versions.iter().enumerate().take(CHANGES) {
            let former = versions.get(at + 1);
            // The version before the oldest stored one may have been deleted.
            let is_new = former.is_none() && is_creation(log, set, version)?;
            let before = if is_new { Some(Vec::new()) } else { read(former)? };
            changes.push(EntityChange {
                time: version.time,
                was_there: former.map_or(!is_new, |former| former.state.is_some()),
                is_there: version.state.is_some(),
                difference: before
                    .as_ref()
                    .zip(after.as_ref())
                    .map(|(old, new)| difference(old, new)),
            });
            after = before;
        }
        Ok(changes)
    }

    /// Renders the entity in a form; a page for this reader. May block.
    ///
    /// # Errors
    /// The syntax cannot express the description, or the log or the contents cannot be read.
    pub fn render(
        self,
        publisher: &Publisher,
        set: &PublishedSet,
        form: Form,
        reader: &Reader,
    ) -> io::Result<Vec<u8>> {
        match form {
            Form::Rdf(Syntax::NTriples) => Ok(self.lines),
            Form::Rdf(syntax) => {
                let mut out = Vec::with_capacity(self.lines.len());
                abreast_rdf::write(syntax, &self.lines, &WriteOptions::default(), &mut out)
                    .map_err(io::Error::other)?;
                Ok(out)
            }
            Form::Page => {
                let changes = self.changes(&**publisher.log(), set)?;
                entity_page(publisher, set, &self, &changes, reader).map_err(io::Error::other)
            }
        }
    }
}
