//! Seeds whose faults are known and not repaired yet. A repair takes its seeds out; none is added for a new fault.
//!
//! Run one with `ABREAST_TEST_SEED=SEED`, which ignores these lists.

/// ResourceSync 1.1: alarms (exit code 3 for a right copy) by clocks that differ, and entities lost or deleted where clocks or
/// documents of a cache contradict each other.
pub(super) const LISTS: &[u64] = &[16, 114, 216, 482, 522, 658, 696, 697, 808, 906, 915, 950, 958];

/// ResourceSync 0.1, providers without faults: an older Sitemap after a gap.
pub(super) const QUIET_SITEMAPS: &[u64] = &[337, 741];

/// ResourceSync 0.1: mostly alarms; restored servers behind caches.
pub(super) const SITEMAPS: &[u64] = &[7, 83, 282, 308, 315, 392, 410, 416, 426, 493, 842, 885, 906];

/// SDShare: older snapshots of a cache after pages in a circle.
pub(super) const ATOM: &[u64] = &[94, 399, 726, 790];

/// Change feeds: a restored server behind a cache.
pub(super) const ACTIVITIES: &[u64] = &[7];
