//! Responses that describe a resource, and descriptions that a list contains.
//!
//! A response in RDF is stored as a description in canonical N-Triples, for any syntax, so that the
//! same description has the same digest for every origin. In protocols without another sign of
//! deletions, a response without statements means that the resource was deleted.

use super::{Fetched, Fetcher, Part, Place, Target};
use crate::report::failure::Failure;
use crate::sink::outcome::{Notice, Outcome};
use crate::sink::rdf::document::{describe_answer, is_as_asked, not_rdf, syntax_of};
use crate::transfer::store::{Facts, Incoming};
use abreast_folder::Dir;
use abreast_rdf::Syntax;
use abreast_store::mirror::Task;
use abreast_webtypes::Digests;
use std::io::Seek as _;

impl Fetcher {
    /// Stores a description that a list contained.
    pub(super) async fn take_body(
        &mut self,
        task: &Task,
        listed: &Digests,
        at: u64,
    ) -> Result<Fetched, Failure> {
        self.storer.rules.bodies.read(&task.pending, at, &mut self.storer.bytes)?;
        // There is no response for these bytes.
        self.head.clear();
        self.store(task, listed, self.lines(listed, Facts::default()), true).await
    }

    /// Fetches what describes a resource.
    pub(super) async fn fetch_description(
        &mut self,
        task: &Task,
        listed: &Digests,
        dir: &Dir,
        conditional: bool,
    ) -> Result<Fetched, Failure> {
        let item = &task.pending;
        let place = Place::own(item);
        let is_known = listed.strongest().is_some();
        let etag = task.row.as_ref().filter(|_| conditional && !is_known);
        let etag = etag.and_then(|row| row.etag.as_deref());
        // The listed digest does not apply to the bytes of this response.
        let (accept, name, unlisted) = (item.accept(), item.uri.as_str(), &Digests::default());
        let target = Target {
            place: &place,
            accept,
            name,
            dir,
            listed: unlisted,
            length: None,
            etag,
            wants_type: true,
        };
        let Some(part) = self.receive(target).await? else {
            if self.storer.rules.deprecations.is_waiting_for(&item.uri)
                && let Some(kept) = self.storer.writer.kept_description(task)
            {
                self.storer.rules.deprecations.described(&item.uri, &kept);
            }
            let row = self.storer.writer.still_right(task)?;
            return Ok(Fetched::Done(Outcome::Right { row }));
        };
        let Part { mut incoming, facts, .. } = part;
        let sent = facts.media_type.as_deref();
        let syntax = syntax_of(sent, accept, [item.href(), &item.uri]);
        let is_empty = incoming.length == 0;
        if syntax.is_none() && !(is_empty && sent.is_none()) && !is_as_asked(sent, accept) {
            return Err(not_rdf(sent));
        }
        if is_empty {
            return self.nothing_stated();
        }
        let Some(syntax) = syntax else {
            return self.store(task, listed, (incoming, facts), true).await;
        };
        let file = incoming.file.as_mut().map(|temporary| &mut temporary.file);
        let address = facts.address.as_deref().unwrap_or_else(|| item.href());
        let rdf = &self.storer.rules.rdf;
        let described = describe_answer(item, syntax, (&self.storer.bytes, file), address, rdf);
        let described = match described {
            // The document is stored unchanged. A target that needs the statements reports the
            // missing context.
            Err(failure) if failure.code == "jsonld.context" => {
                if let Some(temporary) = incoming.file.as_mut() {
                    temporary.file.rewind()?;
                }
                return self.store(task, listed, (incoming, facts), true).await;
            }
            described => described?,
        };
        let Some((lines, notices)) = described else { return self.nothing_stated() };
        self.storer.rules.deprecations.described(&item.uri, &lines);
        self.storer.rules.skolems.described(&item.uri, &lines);
        self.storer.bytes = lines;
        let lines = self.lines(listed, facts);
        // Descriptions with notices are stored at once.
        let mut stored = self.store(task, listed, lines, notices.is_empty()).await;
        if let Ok(Fetched::Done(Outcome::Stored { notices: all, .. })) = &mut stored {
            all.extend::<Vec<Notice>>(notices);
        }
        stored
    }

    /// The outcome for a response without statements about the resource.
    fn nothing_stated(&self) -> Result<Fetched, Failure> {
        if self.storer.rules.is_gone_if_empty {
            return Ok(Fetched::Done(Outcome::Gone));
        }
        let message =
            "nothing is stated about it, and the feed has no deletion of it; what is here is kept";
        Err(Failure::new("rdf.nothing", message))
    }

    /// The canonical N-Triples in memory, like a received body.
    pub(super) fn lines(&self, listed: &Digests, facts: Facts) -> (Incoming, Facts) {
        let mut incoming = Incoming::new(listed);
        incoming.length = self.storer.bytes.len() as u64;
        let media_type = Some(Syntax::NTriples.media_type().to_owned());
        (incoming, Facts { media_type, ..facts })
    }
}
