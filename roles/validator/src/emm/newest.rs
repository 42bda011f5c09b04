//! A sample of entities with their newest activities.

use crate::emm::doc::Doc;
use crate::emm::item::Item;
use crate::walk::sketch::{Sketch, hash};

/// The newest activities of sampled entities, each with the URL of its page.
pub(super) struct Sample {
    seed: u64,
    pub(super) entities: Sketch<(String, Item)>,
}

impl Sample {
    pub(super) fn new(size: usize, seed: u64) -> Self {
        Self { seed, entities: Sketch::new(size) }
    }

    pub(super) fn page(&mut self, url: &str, doc: &Doc) {
        for item in &doc.items {
            let Some(object) = &item.object else { continue };
            let hash = hash(self.seed, object);
            let new = || (url.to_owned(), item.clone());
            if self.entities.wants(hash)
                && let Some(kept) = self.entities.entry(hash, new)
            {
                let time = |item: &Item| item.time.map(|time| time.instant);
                if time(&kept.1) <= time(item) && kept.1.time.is_some() {
                    *kept = new();
                }
            }
        }
    }
}
