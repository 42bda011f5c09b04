//! The table of adversities and readers: each row is written once, for a neutral history, and is
//! tested with all columns.
//!
//! | file | subject |
//! |---|---|
//! | `history.rs` | the history of a Source, and the deviations of its documents |
//! | `rendering.rs` | the work of a column |
//! | `resourcesync.rs`, `resourcesync_0_1.rs`, `sdshare.rs`, `activities.rs` | columns |
//! | `pushed.rs` | columns of pushed changes |
//! | `served.rs` | the responses of a Source's server |
//! | `world.rs` | a Source, its copy, and the rules for each run |
//! | `outcome.rs` | the outcome of a run, and the expectations of rows |
//! | `circles.rs`, `faults.rs`, `holes.rs`, `others.rs`, `snapshots.rs`, `states.rs`, `times.rs` |
//! rows |
//! | `table.rs` | the columns, and the execution of cells |
//! | `reasons.rs` | cells that cannot occur |
//!
//! `ABREAST_TEST_CELL="IIIF"` limits a run to cells with that text in their name, `ROW / COLUMN`.

mod activities;
mod circles;
mod faults;
mod history;
mod holes;
mod others;
mod outcome;
mod pushed;
mod reasons;
mod rendering;
mod resourcesync;
mod resourcesync_0_1;
mod sdshare;
mod served;
mod snapshots;
mod states;
mod table;
mod times;
mod world;

use self::pushed::Push;
use self::rendering::Rendered;

/// One protocol, or one of its shapes.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) rendered: Box<dyn Rendered>,
    /// How changes are pushed, if they are.
    pub(crate) push: Option<Push>,
}
