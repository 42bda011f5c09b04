//! Input and output of a run: options, events, errors, conditions that last, and the clock.

pub(crate) mod audited;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod failure;
pub(crate) mod heartbeat;
pub(crate) mod last_run;
pub(crate) mod lasting;
pub(crate) mod meters;
pub(crate) mod on_change;
pub(crate) mod open_files;
pub(crate) mod open_store;
pub(crate) mod options;
pub(crate) mod reporter;
pub(crate) mod sinks;
pub(crate) mod uri_list;
