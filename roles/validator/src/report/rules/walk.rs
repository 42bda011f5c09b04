//! Rules of the walk from document to document.

use crate::report::rule::Level::Practice;
use crate::report::rule::Rule;
use abreast_core::Severity::{Note, Warning};

rules! {
    // The walk itself.
    LIMIT: "WALK-limit", Practice, Warning / Warning, "rs-core §6.2", "Everything was checked within the limits",
        "raise the limit if it is an option; what is beyond it was not checked";
    OTHER_HOST: "WALK-other-host", Practice, Note / Note, "rs-core §6.2", "Documents and sampled resources are on the host that was given",
        "run again with `--allow-host` to check it too";
}
