//! Resources and changes of a set, stored for comparison.

use crate::walk::sketch::{Listed, Sketch};
use abreast_resourcesync::v1_1::Change;
use abreast_webtypes::{Digests, W3cDatetime};

/// Changes of a URI that are stored: the latest ones.
const CHANGES_EACH: usize = 4;

/// A change of a resource, and the place of its entry.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    pub(crate) time: W3cDatetime,
    pub(crate) change: Change,
    pub(crate) digests: Digests,
    pub(crate) length: Option<u64>,
    pub(crate) document: String,
    pub(crate) place: (u64, u64),
}

/// The latest changes of a URI.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) uri: String,
    pub(crate) latest: Vec<Changed>,
}

impl Changes {
    pub(crate) fn add(&mut self, changed: Changed) {
        let at = self.latest.partition_point(|other| other.time.instant <= changed.time.instant);
        self.latest.insert(at, changed);
        if self.latest.len() > CHANGES_EACH {
            self.latest.remove(0);
        }
    }
}

/// Sketches of the lists and dumps of a set of resources.
#[derive(Debug)]
pub(crate) struct SetData {
    pub(crate) listed: Sketch<Listed>,
    pub(crate) dumped: Sketch<Listed>,
    pub(crate) changed: Sketch<Changes>,
}

/// Sketches of the resources and changes of a document.
pub(crate) type Sketches = (Sketch<Listed>, Sketch<Changes>);

impl SetData {
    pub(crate) fn new(most: usize) -> Self {
        let listed = Sketch::new(most);
        Self { dumped: Sketch::new(most), changed: Sketch::new(most), listed }
    }

    pub(crate) fn merge(&mut self, (listed, changed): Sketches) {
        self.listed.merge(listed, |_, _| {});
        self.changed.merge(changed, |one, other| {
            other.latest.into_iter().for_each(|change| one.add(change));
        });
    }
}
