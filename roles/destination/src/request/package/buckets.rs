//! An index of sorted hashes: finds a hash with one access to a table and a few accesses to the
//! hashes.
//!
//! Hashes are evenly distributed, so their first bits yield their approximate position. A binary
//! search would access a dozen distant places in memory for each of a million hashes.

use std::ops::Range;

/// Positions of the first hash with each prefix of bits.
#[derive(Debug)]
pub(crate) struct Buckets {
    starts: Vec<u32>,
    /// Number of low bits that are not part of the prefix.
    shift: u32,
}

impl Buckets {
    /// Builds an index of fewer than 2^32 hashes in ascending order.
    pub(crate) fn of(count: usize, hash_at: impl Fn(usize) -> u64) -> Self {
        // The number of buckets is about the number of hashes, so that most buckets have at most
        // one hash.
        let bits = count.max(2).next_power_of_two().trailing_zeros();
        let shift = u64::BITS - bits;
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for at in 0..count {
            starts[(hash_at(at) >> shift) as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Self { starts, shift }
    }

    /// The places of all that are equal to a hash.
    pub(crate) fn find(&self, hash: u64, hash_at: impl Fn(usize) -> u64) -> Range<usize> {
        let bucket = (hash >> self.shift) as usize;
        let (mut from, end) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        while from < end && hash_at(from) < hash {
            from += 1;
        }
        let mut until = from;
        while until < end && hash_at(until) == hash {
            until += 1;
        }
        from..until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_found_and_no_other() {
        for count in [0_usize, 1, 2, 3, 7, 64, 1_000] {
            let mut hashes: Vec<u64> = (0..count as u64)
                .map(|number| (number / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            hashes.extend([0, u64::MAX, u64::MAX]);
            hashes.sort_unstable();
            let buckets = Buckets::of(hashes.len(), |at| hashes[at]);
            for hash in &hashes {
                let expected = hashes.partition_point(|other| other < hash)
                    ..hashes.partition_point(|other| other <= hash);
                assert_eq!(buckets.find(*hash, |at| hashes[at]), expected, "{hash} of {count}");
            }
            assert!(buckets.find(12_345, |at| hashes[at]).is_empty());
        }
    }
}
