#![doc = include_str!("../README.md")]

mod collection;
mod flexible;
mod name;
mod profile;
mod read;
mod write;

pub use profile::{ActivityType, Profile};
pub use read::{
    Action, Document, DocumentKind, Item, Link, Object as ReadObject, ReadError, has_mark, not_json,
};
pub use write::{
    Activity, Collection, EntryPoint, Instrument, LinkTo, Object, Page, PageWriter, write_activity,
    write_entry_point, write_patch,
};
