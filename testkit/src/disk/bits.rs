//! Single bits that flip in stored bytes.

use crate::run::environment::number;
use abreast_core::testing::Random;
use std::path::Path;

/// What became of a store in which a bit flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The check found nothing, and the store answers as before.
    Unnoticed,
    /// The check found it, and the store was repaired.
    Repaired,
    /// The check found it, and the store cannot be repaired.
    Lost,
}

/// How often a test flips a bit: `ABREAST_TEST_FLIPS`, or its own number.
pub fn flips(own: u64) -> u64 {
    number("ABREAST_TEST_FLIPS").unwrap_or(own)
}

/// Flips one bit.
pub fn flip(bytes: &mut [u8], bit: u64) {
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
}

/// Writes a file with one bit flipped, `flips` times, and hands each to `examine`: its path, its
/// bytes and words for messages.
///
/// # Panics
/// When fewer than one in ten is noticed, or more than one in twenty is lost.
pub fn flip_each(
    own: u64,
    original: &[u8],
    name: &str,
    examine: &mut dyn FnMut(&Path, &[u8], &str) -> Outcome,
) {
    let flips = flips(own);
    let mut random = Random::new(0x1234_5678_9abc_def1);
    let (mut noticed, mut lost) = (0, 0);
    for _ in 0..flips {
        let bit = random.below(original.len() as u64 * 8);
        let mut flipped = original.to_vec();
        flip(&mut flipped, bit);
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(name);
        std::fs::write(&path, &flipped).unwrap();
        let outcome = examine(&path, &flipped, &format!("bit {bit}"));
        noticed += u64::from(outcome != Outcome::Unnoticed);
        lost += u64::from(outcome == Outcome::Lost);
    }
    eprintln!(
        "{noticed} of {flips} noticed, the others change no answer; {lost} cannot be repaired"
    );
    assert!(noticed > flips / 10 && lost * 20 < flips, "{noticed} noticed, {lost} lost");
}
