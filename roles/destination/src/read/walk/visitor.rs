//! The interface for the entries of a walk.

use crate::plan::listed::Listed;
use crate::report::error::Error;
use crate::request::package::download::Downloads;
use abreast_store::mirror::{ChangeOrder, Document};
use abreast_webtypes::Moment;

/// The category of a resource if the document leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    /// The categories in the document decide.
    Own,
    /// The copy contains the resource because of its categories, which it retains.
    AsKept,
    /// The copy does not contain the resource: a list of all resources shows its categories.
    Unknown,
}

/// Processes the entries of a walk.
pub(crate) trait Visitor {
    /// The documents of a snapshot are read completely from here on.
    fn begin_snapshot(&mut self, _name: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Called at the start of a document with resources or changes.
    fn begin_document(&mut self, _url: &str) {}

    /// A resource of a snapshot; `as_of` is the time of its document, `lines` its bytes if they came with it.
    fn resource(
        &mut self,
        listed: &Listed<'_>,
        as_of: Option<Moment>,
        lines: Option<&[u8]>,
    ) -> Result<(), Error>;

    /// A snapshot lists a resource as deleted.
    fn gone(&mut self) {}

    /// A document of a snapshot was read to its end. An error is one of the document.
    fn end_document(&mut self, _url: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Called if one of `named` documents of a snapshot cannot be read; an error ends the walk.
    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error>;

    /// Whether the documents that were left out because of their categories are read after all.
    fn needs_all(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Processes a resource in the user's list, independent of the documents; with `anew`, even if
    /// the copy contains the resource.
    fn wanted(&mut self, listed: &Listed<'_>, _anew: bool) -> Result<(), Error> {
        self.resource(listed, None, None)
    }

    /// A change that is not known.
    fn change(&mut self, listed: &Listed<'_>, order: ChangeOrder) -> Result<(), Error>;

    /// Changes are passed on again, because the order of changes without a place was a guess.
    fn again(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Discards the changes so far, which are passed on again.
    fn forget(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// A change that is known already.
    fn known_change(&mut self, _listed: &Listed<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the copy has another version of a resource than the change results in, and no
    /// version at that time or later.
    fn differs(&mut self, _listed: &Listed<'_>, _time: Moment) -> Result<bool, Error> {
        Ok(false)
    }

    /// Whether it is open if the list of all resources contains the last change of a resource.
    fn is_open(&self, _uri: &str) -> bool {
        false
    }

    /// Whether a change without categories concerns a selected resource.
    fn category(&mut self, _listed: &Listed<'_>) -> Result<Category, Error> {
        Ok(Category::Own)
    }

    /// Lists were not read because of their categories.
    fn left_out(&mut self, _categories: &crate::plan::select::OtherCategories) {}

    /// Whether a plan is made; else the documents are only compared or listed.
    fn plans(&self) -> bool {
        false
    }

    /// Whether the copy is empty and without a plan.
    fn is_new_copy(&self) -> Result<bool, Error> {
        Ok(true)
    }

    /// The known version of a document, for a conditional request.
    fn document(&self, _url: &str) -> Result<Option<Document>, Error> {
        Ok(None)
    }

    /// The folder for packages and descriptions, if the copy has one.
    fn downloads(&self) -> Option<Downloads> {
        None
    }

    /// A deviation that does not matter for the copy.
    fn notice(&mut self, code: &str, url: &str, message: &str);

    /// A fault without which the copy may lack something. An error ends the walk.
    fn fault(&mut self, code: &str, url: &str, message: &str) -> Result<(), Error>;

    /// Records entries of a document that could not be parsed and were left out; returns whether
    /// there are any.
    fn skipped(&mut self, _url: &str, skipped: u64) -> Result<bool, Error> {
        Ok(skipped > 0)
    }
}
