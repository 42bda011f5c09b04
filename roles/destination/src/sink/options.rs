//! Rules of a sink that follow from its options.

use crate::copy::path_map::NameRules;
use crate::report::sinks::SinkOptions;

impl SinkOptions {
    /// The rules for names if URIs are mapped to keys instead of files.
    #[cfg_attr(
        not(feature = "s3"),
        expect(clippy::unused_self, reason = "no such kind without its feature")
    )]
    pub(crate) const fn key_rules(&self) -> Option<NameRules> {
        #[cfg(feature = "s3")]
        if let Self::Objects(_) = self {
            return Some(super::objects::KEY_RULES);
        }
        None
    }
}
