//! The contract of [`ChangeLog`](crate::ChangeLog) as code: every store runs it.
