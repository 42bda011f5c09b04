//! Destination: discovers, copies and keeps up.

mod path_map;

pub use path_map::{BaseError, Form, MAX_PATH_BYTES, NameRules, PathError, PathMap, STATE_FOLDER, common_directory};
#[doc(hidden)]
pub use path_map::check_any_input as check_path_map;
