//! Hashing several bodies together: four short bodies take the time of two, so bodies that only
//! need MD5 wait for each other.

use crate::request::verify::Hasher;
use crate::transfer::store::{Facts, digests_of};
use abreast_store::mirror::Task;
use abreast_webtypes::{Digests, md5_lanes};

/// Maximum number of waiting bodies of a connection: four rounds, since some bodies are longer than
/// others.
const TOGETHER: usize = 4 * md5_lanes::LANES;
/// Approximate maximum total length of waiting bodies, in bytes: eight of the longest.
const WAITING_BYTES: usize = 512 << 10;
/// Maximum length of a waiting body, in bytes.
pub(crate) const TOGETHER_BYTES: u64 = 64 << 10;

/// A complete body that waits to be hashed.
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) head: Vec<u8>,
    pub(crate) listed: Digests,
    pub(crate) facts: Facts,
}

/// The digests of many bodies, for the algorithms that are listed for each; empty for items without
/// a body.
pub(crate) fn digests_of_all<'a>(
    bodies: impl Iterator<Item = Option<(&'a Task, &'a [u8])>>,
) -> Vec<Digests> {
    let (mut out, mut places, mut together) = (Vec::new(), Vec::new(), Vec::new());
    for body in bodies {
        let mut digests = Digests::default();
        if let Some((task, body)) = body {
            let mut listed = Digests::default();
            listed.set_from_bytes(&task.pending.digests);
            if body.len() as u64 <= TOGETHER_BYTES && Hasher::for_listed(&listed).is_md5_only() {
                places.push(out.len());
                together.push(body);
            } else {
                digests = digests_of(task, body);
            }
        }
        out.push(digests);
    }
    for (at, md5) in places.into_iter().zip(md5_lanes::digests(&together)) {
        out[at].md5 = Some(md5);
    }
    out
}

/// Whether enough bodies wait.
pub(crate) fn are_enough(waiting: &[(usize, Held)]) -> bool {
    waiting.len() >= TOGETHER
        || waiting.iter().map(|(_, held)| held.bytes.len()).sum::<usize>() >= WAITING_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_store::mirror::Pending;

    #[test]
    fn together_or_alone_the_digests_are_the_same() {
        let texts: Vec<Vec<u8>> = (0..20).map(|n| vec![n; usize::from(n) * 5_000]).collect();
        let of = |hash: &str| {
            let mut digests = Digests::default();
            digests.parse_into(hash.as_bytes()).unwrap();
            Task {
                pending: Pending { digests: digests.to_bytes(), ..Pending::default() },
                ..Task::default()
            }
        };
        let kinds = [
            of("md5:5d41402abc4b2a76b9719d911017c592"),
            of("sha-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
            Task::default(),
        ];
        let bodies: Vec<_> =
            texts.iter().zip(kinds.iter().cycle()).map(|(text, task)| (task, &text[..])).collect();
        let all = digests_of_all(bodies.iter().map(|body| Some(*body)).chain([None]));
        assert_eq!(all.len(), bodies.len() + 1);
        for ((task, body), digests) in bodies.iter().zip(&all) {
            assert_eq!(digests, &digests_of(task, body));
        }
    }
}
