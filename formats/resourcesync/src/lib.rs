#![doc = include_str!("../README.md")]

pub mod package;
pub mod plain_sitemap;
pub mod sitemap;
pub mod v0_1;
pub mod v1_1;
