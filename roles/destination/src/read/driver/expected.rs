//! The resources that the Source lists, passed on without a plan.

use super::Driver;
use super::judged::{Judged, judge_walk};
use super::remarks::remarks;
use crate::plan::listed::Listed;
use crate::read::Whole;
use crate::read::expectation::Expectation;
use crate::read::position::{Due, Of, Position};
use crate::read::walk::{Visitor, Walk};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::package::download::Downloads;
use crate::request::requests::Requests;
use abreast_store::mirror::{ChangeOrder, Mirror};
use abreast_webtypes::{Moment, Timestamp};

impl Driver {
    /// Passes on all resources that the Source has now: the listed resources, and the changes since
    /// the list. `known` is the database of the copy that is compared with them.
    ///
    /// # Errors
    /// A document cannot be read, so that the missing resources are not known.
    pub(crate) fn expect(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        to: &mut dyn Visitor,
    ) -> Result<Expectation, Error> {
        let offers = self.reader.offers(None, options)?;
        let known = known.map(Position::load).transpose()?.unwrap_or_default();
        let mut expectation = Expectation::new(&known, self.reader.is_gone_if_empty());
        let mut position = Position::default();
        if offers.whole == Whole::Snapshot {
            let mut walk = Walk::new((requests, options), &position, false, to);
            let snapshot = self.reader.snapshot(&mut walk)?;
            let is_whole = walk.is_whole();
            position.reset(snapshot.changes_from);
            position.bookmark = snapshot.bookmark;
            expectation.list.at = snapshot.as_of;
            expectation.lists_all = snapshot.lists_all && is_whole;
            expectation.is_lacking = !is_whole;
            if snapshot.lists_all && position.until().is_none() && position.bookmark.is_none() {
                return Ok(expectation);
            }
        } else if let Whole::Nothing(help) = offers.whole {
            let message = "the Source lists only changes, so nothing can be compared with them";
            return Err(Error::new("list.none", ExitCode::Usage, message).with_help(help));
        }
        let Some(url) = offers.changes else { return Ok(expectation) };
        // The list does not show changes that the copy could not read either.
        if let Some(unknown) = known.unknown.as_ref().filter(|unknown| unknown.is_fault)
            && position.snapshot() <= known.snapshot()
        {
            expectation.is_lacking = true;
            to.notice(
                "gap",
                &url,
                &format!("{}; changes in between are not compared", unknown.why),
            );
        }
        if known.due.is_none() {
            position.remember(&known);
        }
        let admission =
            Some(Admission::new(&options.url, &options.allow_hosts, options.allow_downgrade));
        let mut walk =
            Walk::new((requests, options), &position, false, &mut *to).with_admission(admission);
        self.reader.changes(&mut walk)?;
        let (walked, marks) = walk.finish();
        if let Some(cut) = walked.cut {
            let message = format!(
                "{}: {}; a copy cannot be compared with what was not reached",
                cut.url, cut.why
            );
            return Err(Error::new(cut.code, ExitCode::Partial, message)
                .with_help("report it to the server's operator"));
        }
        expectation.is_lacking |= walked.left_out;
        for (is_lacking, code, url, message) in remarks(&url, &walked) {
            expectation.is_lacking |= is_lacking;
            to.notice(code, url, &message);
        }
        let is_pushed = known.of() == Of::Pushed;
        match judge_walk(&position, &walked, &marks) {
            Judged::Gap(due) if due.is_uncertain && !is_pushed => {
                expectation.list.is_uncertain = true;
            }
            Judged::Gap(Due { why, .. }) | Judged::Late(why) => {
                expectation.has_gap = true;
                // A copy that followed the changes in between contains them.
                let is_followed = known.due.is_none()
                    && known.unknown.as_ref().is_none_or(|unknown| !unknown.is_fault)
                    && walked.from.is_none_or(|from| known.is_touched_by(from));
                if !is_followed {
                    expectation.is_lacking = true;
                    let message = format!("{why}; changes in between are not compared");
                    to.notice("gap", &url, &message);
                }
            }
            // Feeds that do not specify the start of their changes reach the position if they
            // contain an older change.
            Judged::Continued => {
                let is_reached = walked.from.is_some() || walked.new < walked.entries;
                expectation.has_gap =
                    !is_reached || walked.end == Some(Timestamp::MAX) || walked.recheck.is_some();
            }
        }
        Ok(expectation)
    }

    /// Passes on each listed resource; returns whether there is a list of all resources. Lists that
    /// cannot be read are skipped, except the first one. Packages are downloaded into `downloads`,
    /// if given.
    pub(crate) fn each_resource(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        downloads: Option<&Downloads>,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<bool, Error> {
        let position = Position::default();
        let mut listing = Listing { downloads, each };
        let mut walk = Walk::new((requests, options), &position, false, &mut listing);
        let has_list = match self.reader.offers(None, options)?.whole {
            Whole::Snapshot => self.reader.snapshot(&mut walk)?.lists_all,
            Whole::Changes | Whole::Nothing(_) => false,
        };
        if !has_list {
            self.reader.changes(&mut walk)?;
        }
        Ok(has_list)
    }
}

/// A visitor that passes on resources only.
struct Listing<'e> {
    downloads: Option<&'e Downloads>,
    each: &'e mut dyn FnMut(&Listed<'_>),
}

impl Visitor for Listing<'_> {
    fn resource(
        &mut self,
        listed: &Listed<'_>,
        _: Option<Moment>,
        lines: Option<&[u8]>,
    ) -> Result<(), Error> {
        match lines {
            None => (self.each)(listed),
            Some(_) => (self.each)(&Listed { body: Some(0), ..listed.clone() }),
        }
        Ok(())
    }

    fn downloads(&self) -> Option<Downloads> {
        self.downloads.cloned()
    }

    fn failed(&mut self, _: &str, error: Error, _: usize) -> Result<(), Error> {
        let is_passed = error.exit_code() != ExitCode::Limit || error.code() == "list.cycle";
        if is_passed { Ok(()) } else { Err(error) }
    }

    fn change(&mut self, listed: &Listed<'_>, _: ChangeOrder) -> Result<(), Error> {
        (self.each)(listed);
        Ok(())
    }

    fn notice(&mut self, _: &str, _: &str, _: &str) {}

    fn fault(&mut self, _: &str, _: &str, _: &str) -> Result<(), Error> {
        Ok(())
    }
}
