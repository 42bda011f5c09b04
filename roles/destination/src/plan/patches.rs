//! Patches in change documents, as part of the plan.
//!
//! Patches are stored in the file of planned bytes in the order in which they are read. When all
//! changes of a resource are known, its item gets the place of its chain of patches. Applying the
//! chain shows whether the patches follow each other; a resource without digests is fetched.

use crate::plan::bodies::NewBodies;
use crate::plan::bodies::chain::{CHAIN_MAX, PATCH_BYTES_MAX, Places};
use crate::plan::planner::Planner;
use crate::report::error::Error;
use abreast_store::mirror::{Pending, Task};

impl Planner<'_> {
    /// Stores the patch of a change. Returns its offset; `None` if a limit is exceeded.
    pub(crate) fn keep_patch(&mut self, patch: &[u8]) -> Result<Option<u64>, Error> {
        if patch.len() > PATCH_BYTES_MAX {
            return Ok(None);
        }
        let new = self.coming_bodies()?;
        if new.is_full() {
            return Ok(None);
        }
        let begin = new.next();
        new.append(&(patch.len() as u64).to_le_bytes())?;
        new.append(patch)?;
        Ok(Some(begin))
    }

    /// Replaces the patch of an item, which belongs to its newest change, by the chain of all
    /// recorded patches, after the patches that are already planned and not applied.
    pub(crate) fn plan_chain(&mut self, item: &mut Pending) -> Result<(), Error> {
        let Some(own) = item.body.take() else { return Ok(()) };
        let mut places =
            Places { base: None, patches: self.mirror.patches(&item.uri, CHAIN_MAX + 1)? };
        // If several changes have the same time, the newest one may lack a patch.
        if places.patches.last() != Some(&own) {
            return Ok(());
        }
        if let Some(Task { pending, .. }) = self.mirror.task(&item.uri)?
            && let Some(begin) = pending.body
        {
            match pending.length {
                Some(length) => places.base = Some((begin, length)),
                None => {
                    if let Ok(mut before) = self.bodies.read_places(begin) {
                        before.patches.append(&mut places.patches);
                        places = before;
                    }
                }
            }
        }
        if places.patches.len() <= CHAIN_MAX {
            let new = self.coming_bodies()?;
            item.body = Some(new.next());
            new.append(&places.to_bytes())?;
        }
        Ok(())
    }

    /// Makes the stored patches durable, in the transaction of the plan.
    pub(crate) fn keep_bodies(&mut self) -> Result<(), Error> {
        self.coming_bodies.take().map_or(Ok(()), |new| self.bodies.keep(self.mirror, new))
    }

    fn coming_bodies(&mut self) -> Result<&mut NewBodies, Error> {
        if self.coming_bodies.is_none() {
            let new = self.bodies.go_on(self.mirror, self.options.dry_run)?;
            self.coming_bodies = Some(new);
        }
        Ok(self.coming_bodies.as_mut().expect("it was begun"))
    }
}
