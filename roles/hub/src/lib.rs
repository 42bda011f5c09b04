//! Takes notifications, keeps them, delivers them.
#![doc = include_str!("../README.md")]
