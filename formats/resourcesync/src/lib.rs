#![doc = include_str!("../README.md")]

pub mod package;
pub mod v1_1;
