//! WebSub's forms, verifications, signatures and streams; no disk, no network, no clock.
#![doc = include_str!("../README.md")]
