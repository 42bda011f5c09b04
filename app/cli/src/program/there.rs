//! Whether something is at a path: the same rules for all commands.

pub(crate) use abreast_maintenance::there::{found, help, is_denied, is_file, make_folder};
