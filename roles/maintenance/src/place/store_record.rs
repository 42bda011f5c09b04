//! Records in the folder of a store that belong to a program, such as the tokens of a server.

use abreast_core::Finding;
use std::io;
use std::path::Path;

/// How the record of a program is checked and repaired.
#[derive(Clone, Copy, Debug)]
pub struct StoreRecord {
    /// Name of the record in messages, such as `the tokens`.
    pub name: &'static str,
    /// Checks the record in the folder of a store; returns its damage.
    pub check: fn(&Path) -> io::Result<Option<Finding>>,
    /// Repairs the record, or with `true` only plans the repair; returns a text about it.
    pub repair: fn(&Path, bool) -> io::Result<Option<String>>,
}
