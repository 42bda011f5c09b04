#![doc = include_str!("../README.md")]

mod profile;
mod write;

pub use profile::{ActivityType, Profile};
pub use write::{
    Activity, Collection, EntryPoint, Instrument, LinkTo, Object, Page, PageWriter, write_activity,
    write_entry_point, write_patch,
};
