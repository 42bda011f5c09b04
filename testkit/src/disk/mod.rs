//! Folders, flipped bits, and disks that lose power.

pub mod bits;
pub mod folder;
pub mod power;
