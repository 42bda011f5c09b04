//! The deletion guard: how many deletions one run may carry out, and which it holds back.

use crate::apply::READ_ITEMS;
use crate::error::Error;
use crate::events::ItemAction;
use crate::session::Session;

impl Session<'_> {
    /// Whether the deletions that are due may be carried out, after everything else. If not, they are held back.
    pub(crate) fn may_delete(&mut self) -> Result<bool, Error> {
        let due = self.mirror.pending_counts()?.deletes;
        if due == 0 {
            return Ok(false);
        }
        if self.report.summary.budget_spent {
            self.hold()?;
            return Ok(false);
        }
        // What this run created says nothing about the copy that the deletions would leave.
        let created = self.report.summary.created;
        let enough = self.options.max_delete.enough_for(due).saturating_add(created);
        let kept = self.mirror.count_rows_up_to(enough)?.saturating_sub(created);
        let allowed = self.options.max_delete.allowed(kept);
        if self.report.new_failures > 0 {
            self.hold()?;
            let message = format!("deletions that wait for a run without new failures: {}", self.report.summary.held);
            self.report.notice("delete.held", &self.options.url, &message);
            return Ok(false);
        }
        if due <= allowed {
            return Ok(true);
        }
        self.hold()?;
        self.report.summary.delete_limit = true;
        let message = format!(
            "deletions due: {due}; allowed in one run: {allowed}; nothing was deleted\n  help: check them with \
             `--dry-run`, then run once with `--max-delete {due}`"
        );
        self.report.problem("delete.limit", &self.options.url, &message);
        Ok(false)
    }

    /// Holds all deletions that are due; a dry run lists them.
    fn hold(&mut self) -> Result<(), Error> {
        if self.options.dry_run {
            self.list_held()?;
        }
        self.report.summary.held = self.mirror.hold_deletes()?;
        Ok(())
    }

    fn list_held(&self) -> Result<(), Error> {
        let (mut key, mut tasks) = (String::new(), Vec::new());
        loop {
            tasks.clear();
            self.mirror.deletes_after(&key, READ_ITEMS, &mut tasks)?;
            let Some(last) = tasks.last() else { return Ok(()) };
            key.clone_from(&last.pending.uri);
            for task in &tasks {
                let leaf = task.row.as_ref().is_some_and(|row| row.leaf);
                self.item(&task.pending.uri, leaf, ItemAction::Held, 0);
            }
        }
    }
}
