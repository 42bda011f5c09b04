//! One entity as it is served: its description in any syntax that can carry it, or as a page.

mod entity;
mod page;
mod render;

pub use entity::{Entity, Form};
