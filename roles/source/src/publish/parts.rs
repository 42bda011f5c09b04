//! Data of projections for a set: one value of each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The parts of a set that belong to projections, by their types.
#[derive(Default)]
pub struct Parts(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Parts {
    /// Adds a part; replaces a part of the same type.
    pub(super) fn insert<T: Send + Sync + 'static>(&mut self, part: Arc<T>) {
        self.0.insert(TypeId::of::<T>(), Box::new(part));
    }

    /// Returns the part of a type, if there is one.
    pub(super) fn get<T: Send + Sync + 'static>(&self) -> Option<&Arc<T>> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parts").field(&self.0.len()).finish()
    }
}
