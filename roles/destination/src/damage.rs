//! What was lost or altered in the copy since it was written: found in comparisons, reported, and planned anew.
//!
//! A comparison with the whole list goes through every row anyway, so it checks all of them. A run that follows changes
//! checks those that it reads about and no others: it stays proportional to what changed.

use crate::error::Error;
use crate::session::Session;
use crate::sink::kept::{Damage, DamageKind, ReadBack, distrusted, fetch_again, is_distrusted, plan_again, read_back};
use crate::sink::options::SinkOptions;
use abreast_store::mirror::{Pending, PendingAction, Row, Task};

/// Rows checked together.
const ROWS: usize = 512;
/// Files that get their own name back in one run; the rest waits for the next comparison.
const MISNAMED_MAX: usize = 10_000;
/// Losses reported one by one in a run; the rest is counted.
const REPORTED_MAX: u64 = 100;

/// Why a resource has its reserved name, and what to do about it.
pub(crate) fn reserved_message(own: &str, reserved: &str) -> String {
    format!(
        "`{own}` is a folder here that no resource needs; the resource is stored as `{reserved}`\n  help: move the folder \
         away, then run `abreast sync` with `--baseline`"
    )
}

impl Session<'_> {
    /// Compares every row with what is there, before a comparison with the whole list.
    pub(crate) fn check_kept(&mut self) -> Result<(), Error> {
        let Some(mut kept) = self.whole_copy()? else { return Ok(()) };
        self.report.begin_phase("comparing");
        let (mut key, mut rows, mut checked) = (String::new(), Vec::new(), 0);
        loop {
            rows.clear();
            self.mirror.rows_after(&key, ROWS, &mut rows)?;
            let Some(last) = rows.last() else { break };
            key.clone_from(&last.uri);
            self.check_cancelled()?;
            let mut damaged = Vec::new();
            for row in &rows {
                match kept.damage(&self.mirror, row, self.options.full)? {
                    Some(damage) => damaged.push((row, damage)),
                    None if row.leaf => self.report_reserved(&row.uri)?,
                    None => {}
                }
            }
            if !damaged.is_empty() {
                self.begin()?;
                for (row, damage) in damaged {
                    self.plan_damaged(row, &damage)?;
                }
                self.commit()?;
            }
            checked += rows.len() as u64;
            self.report.status(checked, 0, 0);
        }
        if self.report.summary.damaged > REPORTED_MAX {
            let message = format!("{} more are missing or altered here", self.report.summary.damaged - REPORTED_MAX);
            self.report.notice("local.missing", &self.options.url, &message);
        }
        Ok(())
    }

    /// Checks the file of a resource that a Change List names. What it had is no longer counted on if it is damaged.
    pub(crate) fn check_one(&mut self, row: &mut Row) -> Result<(), Error> {
        // What is known to be damaged is planned, and counted, already.
        if self.options.sink != SinkOptions::Folder || is_distrusted(row) {
            return Ok(());
        }
        let mut kept = match self.kept.take() {
            Some(kept) => kept,
            None => match read_back("folder", &self.options.folder, &self.mirror)? {
                Some(kept) => kept,
                None => return Ok(()),
            },
        };
        let damage = kept.damage(&self.mirror, row, false);
        self.kept = Some(kept);
        if let Some(damage) = damage?.filter(|damage| damage.kind.is_loss()) {
            self.plan_damaged(row, &damage)?;
            *row = distrusted(row);
        }
        Ok(())
    }

    /// Plans to give files their own names back, after everything else is planned.
    pub(crate) fn plan_names(&mut self) -> Result<(), Error> {
        for uri in std::mem::take(&mut self.misnamed) {
            self.plan_name(&uri)?;
        }
        Ok(())
    }

    /// Plans to look again under which name a resource is kept, if it has the reserved one and nothing else is planned.
    pub(crate) fn plan_name(&self, uri: &str) -> Result<(), Error> {
        if let Some(row) = self.mirror.row(uri)?.filter(|row| row.leaf)
            && self.mirror.task(uri)?.is_none()
        {
            self.mirror.put_pending(&Pending { action: PendingAction::Touch, ..fetch_again(&row) })?;
        }
        Ok(())
    }

    /// Reports a resource that gets its reserved name in this run because of a folder that no resource needs.
    pub(crate) fn check_reserved(&mut self, task: &Task, row: &Row) -> Result<(), Error> {
        let had_it = task.row.as_ref().is_some_and(|before| before.leaf);
        if row.leaf && !had_it { self.report_reserved(&row.uri) } else { Ok(()) }
    }

    /// Reports a resource under its reserved name, unless other resources are in the folder that has its own.
    fn report_reserved(&mut self, uri: &str) -> Result<(), Error> {
        let beneath = format!("{uri}/");
        let (mut rows, mut tasks) = (Vec::new(), Vec::new());
        rows.extend(self.mirror.row(&beneath)?);
        self.mirror.rows_after(&beneath, 1, &mut rows)?;
        self.mirror.pending_after(&beneath, 1, &mut tasks)?;
        let planned = tasks.iter().filter(|task| task.pending.action != PendingAction::Delete);
        let mut others = rows.iter().map(|row| &row.uri).chain(planned.map(|task| &task.pending.uri));
        if others.any(|other| other.starts_with(&beneath)) {
            return Ok(());
        }
        self.reserved += 1;
        if self.reserved <= REPORTED_MAX {
            let shown = |leaf| self.sink.as_ref().map_or_else(|| uri.to_owned(), |sink| sink.shown(uri, leaf));
            let message = reserved_message(&shown(false), &shown(true));
            self.report.notice("path.conflict", uri, &message);
        }
        Ok(())
    }

    /// Reports how many more resources than were reported one by one have their reserved names.
    pub(crate) fn report_more_reserved(&mut self) {
        if self.reserved > REPORTED_MAX {
            let message = format!("{} more resources are stored under reserved names", self.reserved - REPORTED_MAX);
            self.report.notice("path.conflict", &self.options.url, &message);
        }
    }

    /// What a comparison reads back. Objects cost a listing of the store, so only `--baseline` asks for them.
    fn whole_copy(&self) -> Result<Option<Box<dyn ReadBack>>, Error> {
        if self.options.dry_run && !self.options.folder.is_dir() {
            // Before the first run there is no folder, and a dry run makes none.
            return Ok(None);
        }
        match &self.options.sink {
            #[cfg(feature = "s3")]
            SinkOptions::Objects(objects) if self.options.baseline => {
                super::sink::objects::ObjectsKept::of_copy(objects, &self.mirror)
                    .map(|kept| kept.map(|kept| Box::new(kept) as Box<dyn ReadBack>))
            }
            sink => read_back(sink.word(), &self.options.folder, &self.mirror),
        }
    }

    fn plan_damaged(&mut self, row: &Row, damage: &Damage) -> Result<(), Error> {
        match damage.kind {
            // Reported when it is planned for some other reason.
            DamageKind::NoPlace => return Ok(()),
            DamageKind::Name => {
                if self.misnamed.len() < MISNAMED_MAX {
                    self.misnamed.push(row.uri.clone());
                }
                return Ok(());
            }
            // The comparison with the list sees that the file has another time than is listed.
            DamageKind::Touched(file_mtime) => return Ok(self.mirror.put_row(&Row { file_mtime, ..row.clone() })?),
            // The bytes decide, when it is its turn.
            DamageKind::Time => {}
            DamageKind::Missing | DamageKind::Length | DamageKind::Digest => {
                self.report.summary.damaged += 1;
                if self.report.summary.damaged <= REPORTED_MAX {
                    let code = if damage.kind == DamageKind::Missing { "local.missing" } else { "local.altered" };
                    self.report.notice(code, &row.uri, &format!("{}; it is fetched again", damage.message));
                }
            }
        }
        plan_again(&self.mirror, row)
    }
}
