//! Faults between Source and Destination: a copy converges, and no data is lost.
//!
//! Every test that draws numbers prints its seed; ABREAST_TEST_SEED repeats a single
//! seed. ABREAST_TEST_SEEDS sets the number of seeds.

mod changing;
mod network;
pub(crate) mod proxy;
mod resume;
mod same_second;
mod since;
mod web;

use abreast_destination::{Error, Event, Summary, SyncOptions, sync};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A copy that is made within this process, with short pauses between attempts.
struct Copy {
    options: SyncOptions,
}

/// The results of one run, and its output.
struct Ran {
    result: Result<Summary, Error>,
    codes: Vec<String>,
}

impl Ran {
    fn exit(&self) -> u8 {
        self.result
            .as_ref()
            .map_or_else(|error| error.exit_code().number(), |summary| summary.exit_code)
    }

    fn summary(&self) -> &Summary {
        self.result.as_ref().unwrap_or_else(|error| panic!("{error} {:?}", self.codes))
    }
}

impl Copy {
    fn of(url: impl Into<String>, folder: &Path) -> Self {
        let mut options = SyncOptions::new(url, folder);
        options.net.backoff_base = Duration::from_millis(5);
        options.net.retries = 2;
        Self { options }
    }

    fn run(&self) -> Ran {
        let codes = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Error(problem) | Event::Notice(problem) = event {
                codes.lock().unwrap().push(format!("{} {}", problem.code, problem.uri));
            }
        };
        let result = sync(&self.options, &observer, &AtomicBool::new(false));
        Ran { result, codes: codes.into_inner().unwrap() }
    }
}
