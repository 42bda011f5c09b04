//! Publish what changed in a collection; stay in sync with one.
fn main() {}
