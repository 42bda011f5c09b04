//! SDShare 1.0: Atom feeds of snapshots and fragments.
#![doc = include_str!("../README.md")]
