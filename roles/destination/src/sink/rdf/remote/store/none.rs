//! No store: this program was built without one.

use super::super::text::Step;
use crate::report::failure::Failure;
use crate::report::open_store::OpenStore;
use crate::report::sinks::Graph;
use crate::sink::rdf::document::Description;
use crate::sink::rdf::remote::refusal::Refusal;
use std::convert::Infallible;

#[derive(Clone, Debug)]
pub(crate) struct Database(Infallible);

impl Database {
    pub(super) fn of(opened: &OpenStore) -> Self {
        match opened.0 {}
    }

    #[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(crate) fn as_stored(_: &mut Description, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    pub(crate) fn apply(&self, _: &[Step<'_>], _: &Graph) -> Result<(), Refusal> {
        match self.0 {}
    }

    pub(crate) fn lines_of(&self, _: &str, _: &Graph) -> Result<Vec<u8>, Refusal> {
        match self.0 {}
    }

    pub(crate) fn flush(&self) -> Result<(), Refusal> {
        match self.0 {}
    }
}
