//! Results of a diagnosis.

use crate::place::Error;
use abreast_webtypes::without_logins;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One result of a diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "check")]
pub struct Diagnosis {
    /// Stable code, such as `clock` or `space`.
    pub code: &'static str,
    /// Whether the result is good; `false` for a problem.
    pub ok: bool,
    /// Text of the result, for people.
    pub message: String,
    /// How to solve the problem, if there is one.
    pub help: Option<String>,
}

/// Receives results while a diagnosis runs.
pub trait DoctorObserver {
    /// Receives the next result, as soon as it is known.
    fn diagnosed(&mut self, diagnosis: &Diagnosis);

    /// Returns a flag that stops the reading of a Source's documents. Called when the reading starts.
    fn cancel(&mut self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// Number of problems, and the error that ended a diagnosis.
#[derive(Debug, Default)]
pub struct DoctorReport {
    /// Number of results that are problems.
    pub problems: u64,
    /// The error that ended the diagnosis early.
    pub error: Option<Error>,
}

/// A diagnosis that is being made.
pub(super) struct Doctor<'o> {
    pub(super) observer: &'o mut dyn DoctorObserver,
    pub(super) problems: u64,
    pub(super) error: Option<Error>,
}

impl Doctor<'_> {
    /// Passes a result to the observer, without logins.
    pub(super) fn report(&mut self, code: &'static str, ok: bool, what: &str, help: &str) {
        self.problems += u64::from(!ok);
        let [message, help] = [what, help].map(|text| without_logins(text).into_owned());
        let help = (!ok).then_some(help);
        self.observer.diagnosed(&Diagnosis { code, ok, message, help });
    }
}
