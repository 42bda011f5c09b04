//! Removing contents, while other nodes may put the same.

use super::{CONTENTS, Inner, REMOVALS, RENEWALS};
use abreast_core::ContentId;
use abreast_core::contents::{Error, ErrorKind};
use object_store::ObjectStoreExt as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Interval at which a node that puts asks whether another has ended its removal.
const ASK: Duration = Duration::from_millis(200);

impl Inner {
    pub(super) fn remove_unless(
        &self,
        id: &ContentId,
        needed: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        if self.pins.is_pinned(id) {
            return Ok(false);
        }
        let Some(meta) = self.head(id)? else { return Ok(false) };
        if Self::age(&meta) < self.options.grace || needed() {
            return Ok(false);
        }
        let (mark, task) = (self.key(REMOVALS, id), removing(id));
        let started = Instant::now();
        self.ask(&task, self.backend().put(&mark, Vec::new().into()))?;
        // A node that puts waits for a limited time only.
        let is_late = || started.elapsed() > self.options.answer_limit;
        let is_due = self.is_due(id).map(|is_due| is_due && !is_late());
        if let Ok(true) = is_due {
            // The mark stays after an error, since the store may still carry out the request.
            self.delete(id, CONTENTS)?;
            self.delete(id, RENEWALS)?;
        }
        self.delete(id, REMOVALS)?;
        is_due
    }

    /// Whether a marked content is still old, and not pinned by this node.
    fn is_due(&self, id: &ContentId) -> Result<bool, Error> {
        let meta = self.head(id)?;
        let is_old = meta.is_some_and(|meta| Self::age(&meta) >= self.options.grace);
        Ok(is_old && !self.pins.is_pinned(id))
    }

    fn delete(&self, id: &ContentId, folder: &str) -> Result<(), Error> {
        match self.ask(&removing(id), self.backend().delete(&self.key(folder, id))) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits while other nodes remove contents that this node has pinned.
    pub(super) fn wait_for_removals(&self) -> Result<(), Error> {
        if self.pins.is_empty() {
            return Ok(());
        }
        let mut marked = Vec::new();
        self.list(&self.folder(REMOVALS, ""), &mut |id| {
            if self.pins.is_pinned(&id) {
                marked.push(id);
            }
            ControlFlow::Continue(())
        })?;
        marked.iter().try_for_each(|id| self.wait_for_removal(id))
    }

    /// Waits until a removal has ended, then checks that the content is there. A node that was
    /// killed leaves its mark: after the longest time of a removal, the mark is deleted.
    fn wait_for_removal(&self, id: &ContentId) -> Result<(), Error> {
        let mark = self.key(REMOVALS, id);
        let end = Instant::now() + 3 * self.options.answer_limit;
        loop {
            match self.ask(&removing(id), self.backend().head(&mark)) {
                Ok(_) if Instant::now() < end => std::thread::sleep(ASK),
                Ok(_) => {
                    self.delete(id, REMOVALS)?;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        if self.head(id)?.is_some() {
            return Ok(());
        }
        let message = format!(
            "another node has removed the content {id} while it was being kept\n  help: keep it again"
        );
        Err(Error::new(ErrorKind::Busy, message))
    }
}

fn removing(id: &ContentId) -> String {
    format!("remove the kept content {id}")
}
