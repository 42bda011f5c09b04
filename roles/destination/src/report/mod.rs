//! What a run is given and what it reports: options, events, errors, conditions that last, the clock.

pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod lasting;
pub(crate) mod options;
pub(crate) mod reporter;
pub(crate) mod uri_list;
