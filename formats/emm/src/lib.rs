#![doc = include_str!("../README.md")]

mod collection;
mod flexible;
mod item;
mod name;
mod profile;
mod read;
mod reading;
mod write;

pub use item::{Action, Item, Link, Object as ReadObject};
pub use profile::{ActivityType, Profile};
pub use read::{Document, DocumentKind, ReadError, has_mark, not_json};
pub use write::{
    Activity, Collection, EntryPoint, Instrument, LinkTo, Object, Page, PageWriter, write_activity,
    write_entry_point, write_patch,
};
