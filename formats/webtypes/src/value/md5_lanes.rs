//! MD5 of many short messages at once: four side by side [rfc1321 §3].
//!
//! One MD5 is a chain of dependent steps that leaves most of a processor idle; four independent
//! ones fill it. Collections are made of small files, so this is what reading one costs. The arrays
//! below leave it to the compiler whether it takes vector instructions; even scalar ones of four
//! messages overlap. The `md-5` crate is the reference in the tests, and hashes large files.

/// Messages hashed side by side.
pub const LANES: usize = 4;

type Lane = [u32; LANES];

const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The digests of the messages, in their order.
pub fn digests(messages: &[&[u8]]) -> Vec<[u8; 16]> {
    let mut out = vec![[0; 16]; messages.len()];
    // The longest first, so that all lanes are done at about the same time.
    let mut waiting: Vec<(usize, &&[u8])> = messages.iter().enumerate().collect();
    waiting.sort_by_key(|(_, message)| std::cmp::Reverse(message.len()));
    let mut waiting = waiting.into_iter();
    let mut lanes: [Option<Message<'_>>; LANES] =
        std::array::from_fn(|_| waiting.next().map(Message::new));
    let mut state: [Lane; 4] = START.map(|word| [word; LANES]);
    while lanes.iter().any(Option::is_some) {
        let mut words: [Lane; 16] = [[0; LANES]; 16];
        for (lane, message) in lanes.iter_mut().enumerate() {
            let Some(message) = message else { continue };
            for (word, bytes) in words.iter_mut().zip(message.next_block().as_chunks::<4>().0) {
                word[lane] = u32::from_le_bytes(*bytes);
            }
        }
        compress(&mut state, &words);
        for (lane, message) in lanes.iter_mut().enumerate() {
            let Some(ended) = message.take_if(|message| message.ended()) else { continue };
            for (part, word) in out[ended.number].as_chunks_mut::<4>().0.iter_mut().zip(&state) {
                *part = word[lane].to_le_bytes();
            }
            *message = waiting.next().map(Message::new);
            for (word, start) in state.iter_mut().zip(START) {
                word[lane] = start;
            }
        }
    }
    out
}

/// A message on its way through a lane: whole blocks from the message, then its padded end.
struct Message<'a> {
    number: usize,
    rest: &'a [[u8; 64]],
    end: [[u8; 64]; 2],
    /// Blocks of `end` still to come, 1 or 2 at first.
    end_blocks: usize,
    end_total: usize,
}

impl<'a> Message<'a> {
    fn new((number, bytes): (usize, &&'a [u8])) -> Self {
        let (rest, partial) = bytes.as_chunks::<64>();
        let mut end = [[0; 64]; 2];
        end[0][..partial.len()].copy_from_slice(partial);
        end[0][partial.len()] = 0x80;
        // The length in bits takes the last eight bytes. A second block follows if the first has
        // too little room.
        let end_total = if partial.len() < 56 { 1 } else { 2 };
        end[end_total - 1][56..]
            .copy_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
        Self { number, rest, end, end_blocks: end_total, end_total }
    }

    fn next_block(&mut self) -> &[u8; 64] {
        if let Some((block, rest)) = self.rest.split_first() {
            self.rest = rest;
            return block;
        }
        let block = &self.end[self.end_total - self.end_blocks];
        self.end_blocks -= 1;
        block
    }

    const fn ended(&self) -> bool {
        self.end_blocks == 0
    }
}

#[inline]
fn each(f: impl Fn(usize) -> u32) -> Lane {
    std::array::from_fn(f)
}

/// One block of each lane.
fn compress(state: &mut [Lane; 4], words: &[Lane; 16]) {
    let [mut a, mut b, mut c, mut d] = *state;
    macro_rules! step {
        ($f:expr, $a:ident, $b:ident, $c:ident, $d:ident, $word:expr, $turn:expr, $add:expr) => {
            $a = each(|i| {
                let mixed: u32 = $f($b[i], $c[i], $d[i]);
                $a[i]
                    .wrapping_add(mixed)
                    .wrapping_add(words[$word][i])
                    .wrapping_add($add)
                    .rotate_left($turn)
                    .wrapping_add($b[i])
            });
        };
    }
    macro_rules! round {
        ($f:expr, $turns:expr, $first:expr, $stride:expr, $table:expr) => {
            round!(@ $f, $turns, $first, $stride, $table, 0, 4, 8, 12)
        };
        (@ $f:expr, $turns:expr, $first:expr, $stride:expr, $table:expr, $($n:expr),*) => {
            $(
                step!($f, a, b, c, d, ($first + $stride * $n) % 16, $turns[0], SINES[$table + $n]);
                step!($f, d, a, b, c, ($first + $stride * ($n + 1)) % 16, $turns[1], SINES[$table + $n + 1]);
                step!($f, c, d, a, b, ($first + $stride * ($n + 2)) % 16, $turns[2], SINES[$table + $n + 2]);
                step!($f, b, c, d, a, ($first + $stride * ($n + 3)) % 16, $turns[3], SINES[$table + $n + 3]);
            )*
        };
    }
    round!(|x: u32, y: u32, z: u32| z ^ (x & (y ^ z)), [7, 12, 17, 22], 0, 1, 0);
    round!(|x: u32, y: u32, z: u32| y ^ (z & (x ^ y)), [5, 9, 14, 20], 1, 5, 16);
    round!(|x: u32, y: u32, z: u32| x ^ y ^ z, [4, 11, 16, 23], 5, 3, 32);
    round!(|x: u32, y: u32, z: u32| y ^ (x | !z), [6, 10, 15, 21], 0, 7, 48);
    for (word, new) in state.iter_mut().zip([a, b, c, d]) {
        *word = each(|i| word[i].wrapping_add(new[i]));
    }
}

/// `floor(2^32 × |sin(n + 1)|)`, the constants of the RFC.
const SINES: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest as _, Md5};

    #[test]
    fn four_at_once_equal_one_after_the_other() {
        // Every length around the block borders, and mixes of short and long in one go.
        let bytes: Vec<u8> =
            (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for count in [0, 1, 7, 8, 9, 40] {
            for step in [1, 3, 61, 331] {
                let messages: Vec<&[u8]> =
                    (0..count).map(|n| &bytes[n % 7..n % 7 + (n * step + step) % 9_000]).collect();
                let expected: Vec<[u8; 16]> =
                    messages.iter().map(|message| Md5::digest(message).into()).collect();
                assert_eq!(digests(&messages), expected, "{count} messages, step {step}");
            }
        }
        for length in 0..=260 {
            assert_eq!(
                digests(&[&bytes[..length]]),
                [<[u8; 16]>::from(Md5::digest(&bytes[..length]))],
                "{length}"
            );
        }
    }
}
