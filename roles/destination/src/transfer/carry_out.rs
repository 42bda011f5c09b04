//! The order of a transfer: packages, requests, further plans, deletions.

use crate::plan::planner::PlanContext;
use crate::read::driver::Driver;
use crate::report::error::Error;
use crate::transfer::Transfer;
use crate::transfer::package::packages::supply;

/// Maximum number of repeated reads of changes because resources changed while they were fetched.
const REPLANS_MAX: usize = 3;

impl<'a> Transfer<'a> {
    /// Fetches, plans again what changed meanwhile, then deletes. A dry run takes the same way, and
    /// changes nothing.
    pub(crate) fn carry_out(
        &mut self,
        reader: &mut Driver,
        run: &mut PlanContext<'_, 'a>,
    ) -> Result<(), Error> {
        let is_dry_run = self.options.dry_run;
        if !is_dry_run {
            supply(self, reader, run)?;
        }
        self.apply_fetches(run.report)?;
        if !run.report.summary.budget_spent && reader.has_rest() && reader.plan_rest(run)? {
            self.withdraw(run.report)?;
            supply(self, reader, run)?;
            self.apply_fetches(run.report)?;
        }
        for _ in 0..REPLANS_MAX {
            // A refused resource remains refused. A failed resource may now have another version,
            // or may have been deleted.
            if is_dry_run
                || run.report.summary.budget_spent
                || self.failures.iter().all(|failed| failed.failure.refused)
                || !reader.plan_again(run)?
            {
                break;
            }
            self.withdraw(run.report)?;
            self.apply_fetches(run.report)?;
        }
        if self.may_delete(run.report)? {
            self.apply_deletes(run.report)?;
        }
        self.conclude_guard(run.report)
    }
}
