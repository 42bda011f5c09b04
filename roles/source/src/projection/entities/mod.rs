//! One entity as a client receives it: its description in any syntax that can express it, or a
//! page.

mod entity;
mod page;
mod render;

pub use entity::{Entity, Form};
