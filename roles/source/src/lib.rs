//! Source: watches a folder, publishes what changed.
