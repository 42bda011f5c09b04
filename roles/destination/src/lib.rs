//! Destination: discovers, copies and keeps up.
#![doc = include_str!("../README.md")]

mod admit;
mod apply;
mod audit;
mod baseline;
mod changes;
mod desk;
mod discover;
mod document;
mod error;
mod events;
mod fetch;
mod links;
mod options;
mod partial;
mod path_map;
mod place;
mod probe;
mod run;
mod session;
mod state;
mod verify;
mod workers;

pub use audit::{AuditReport, audit};
pub use error::{Error, ExitCode};
pub use events::{Event, Item, ItemAction, Mode, Observer, Problem, Silent, Status, Summary};
pub use options::{AuditOptions, MaxDelete, SyncOptions};
#[doc(hidden)]
pub use path_map::check_any_input as check_path_map;
pub use path_map::{BaseError, Form, MAX_PATH_BYTES, NameRules, PathError, PathMap, STATE_FOLDER, common_directory};
pub use run::{follow, sync};
