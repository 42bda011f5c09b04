#![doc = include_str!("../README.md")]

pub mod v1_1;
