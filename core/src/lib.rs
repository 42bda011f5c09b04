//! The change log, its rules and its contract.
