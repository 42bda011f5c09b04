//! Findings about the members of a document.

use crate::emm::context::Contexts;
use crate::report::{Findings, Rule};
use abreast_emm::Profile;
use abreast_webtypes::{Timestamp, excerpt, resolve};

/// Adds findings about the members of a document; `at` is the place of a member as a JSON pointer.
pub(super) struct Judge<'f> {
    pub(super) profile: Profile,
    pub(super) contexts: Contexts,
    /// URL of the document, for its findings.
    pub(super) url: &'f str,
    /// Clock of the server at the time of the answer.
    pub(super) now: Option<Timestamp>,
    pub(super) found: &'f mut Findings,
}

impl Judge<'_> {
    pub(super) fn add<M: Into<String>>(
        &mut self,
        rule: &'static Rule,
        at: &str,
        message: impl FnOnce() -> M,
    ) {
        let place = || if at.is_empty() { String::new() } else { format!("{}: ", excerpt(at)) };
        self.found.add(rule, (0, 0), || place() + &message().into());
    }

    pub(super) fn is_emm(&self) -> bool {
        self.profile != Profile::Iiif1
    }

    pub(super) fn absolute(&self, text: &str) -> String {
        resolve(self.url, text).unwrap_or_else(|_| text.to_owned())
    }
}
