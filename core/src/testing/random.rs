//! Where do the random sequences come from? From a number that repeats them.

/// A small generator (splitmix64); the same seed gives the same sequence.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below the limit.
    pub(super) const fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// One of them.
    pub(super) const fn of<'a>(&mut self, choices: &'a [&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}
