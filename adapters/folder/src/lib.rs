//! A folder opened once and never left.
