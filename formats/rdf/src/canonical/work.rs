//! The cost limit for labelling blank nodes.

/// The remaining work; a unit is about one statement that is read.
pub(crate) struct Work(u64);

/// The allowed work is used up.
#[derive(Debug)]
pub(super) struct Exhausted;

impl Work {
    pub(crate) fn new(units: u64) -> Self {
        Self(units)
    }

    pub(crate) fn rest(&self) -> u64 {
        self.0
    }

    pub(super) fn spend(&mut self, units: usize) -> Result<(), Exhausted> {
        let rest = self.0.checked_sub(units as u64);
        self.0 = rest.unwrap_or(0);
        rest.map(|_| ()).ok_or(Exhausted)
    }
}
