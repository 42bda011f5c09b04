//! The rules of a robots.txt for this program, indexed so that matching a path reads few rules
//! [rfc9309 §2.2.2].
//!
//! Rules are grouped by their prefix, the part before the first wildcard. One search finds the
//! longest prefix of a path, and each group contains the position of the group with the next
//! shorter prefix. A rule with wildcards is matched only if the path contains all its pairs of
//! characters.

use std::fmt::Write as _;

/// Number of pairs of characters that must occur in a path before a rule is matched.
const PAIRS: usize = 4;
/// Number of values to which pairs of characters are mapped.
const PAIR_NUMBERS: usize = 4_096;

/// Groups of rules, sorted by prefix.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rules {
    groups: Vec<Group>,
}

/// The rules with the same prefix.
#[derive(Debug, PartialEq)]
struct Group {
    begin: String,
    /// The group with the longest prefix of this group's prefix.
    shorter: Option<usize>,
    rules: Vec<Rule>,
    /// Length of the longest pattern in this group and the groups with shorter prefixes.
    longest: usize,
}

#[derive(Debug, PartialEq)]
struct Rule {
    allows: bool,
    /// Length of the pattern; the longest matching pattern decides.
    length: usize,
    kind: Kind,
}

#[derive(Debug, PartialEq)]
enum Kind {
    /// The pattern ends after the prefix, so that it matches any path with this prefix.
    Begin,
    /// The pattern requires that the path equals the prefix.
    Whole,
    /// The pattern has wildcards after the prefix.
    Wild { pattern: String, pairs: [u16; PAIRS] },
}

impl Rules {
    /// Builds the index from normalised patterns, each with whether it allows access.
    pub(super) fn new(paths: Vec<(String, bool)>) -> Self {
        let mut counts = vec![0_u32; PAIR_NUMBERS];
        for number in paths.iter().flat_map(|(pattern, _)| pairs_in(pattern.trim_end_matches('$')))
        {
            counts[usize::from(number)] += 1;
        }
        let mut sorted: Vec<(String, Rule)> = paths
            .into_iter()
            .map(|(pattern, allows)| {
                let length = pattern.len();
                let (text, to_the_end) =
                    pattern.strip_suffix('$').map_or((&*pattern, false), |text| (text, true));
                let begin = text[..text.find('*').unwrap_or(text.len())].to_owned();
                let kind = match (begin.len() < text.len(), to_the_end) {
                    (false, false) => Kind::Begin,
                    (false, true) => Kind::Whole,
                    (true, _) => Kind::Wild { pairs: rarest_pairs(text, &counts), pattern },
                };
                (begin, Rule { allows, length, kind })
            })
            .collect();
        sorted.sort_by(|(one, _), (two, _)| one.cmp(two));
        let mut groups: Vec<Group> = Vec::new();
        // The groups whose prefixes are prefixes of the last group, including that group, the
        // shortest first.
        let mut open: Vec<usize> = Vec::new();
        for (begin, rule) in sorted {
            if groups.last().is_none_or(|last| last.begin != begin) {
                while open.last().is_some_and(|at| !begin.starts_with(&groups[*at].begin)) {
                    open.pop();
                }
                let shorter = open.last().copied();
                let longest = shorter.map_or(0, |at| groups[at].longest);
                open.push(groups.len());
                groups.push(Group { begin, shorter, rules: Vec::new(), longest });
            }
            if let Some(group) = groups.last_mut() {
                group.longest = group.longest.max(rule.length);
                group.rules.push(rule);
            }
        }
        Self { groups }
    }

    /// Whether the longest matching pattern allows the path. If two matching patterns have the same
    /// length, the allowing pattern decides.
    pub(super) fn allow(&self, path: &str) -> bool {
        let path = normal(path);
        let mut at = self.groups.partition_point(|group| group.begin <= path).checked_sub(1);
        let mut best: Option<(usize, bool)> = None;
        let mut pairs = None;
        while let Some(group) = at.map(|at| &self.groups[at]) {
            if best.is_some_and(|(length, _)| length > group.longest) {
                break;
            }
            at = group.shorter;
            if !path.starts_with(&group.begin) {
                continue;
            }
            for rule in &group.rules {
                let rank = Some((rule.length, rule.allows));
                if rank <= best {
                    continue;
                }
                let fits = match &rule.kind {
                    Kind::Begin => true,
                    Kind::Whole => path == group.begin,
                    Kind::Wild { pattern, pairs: wanted } => {
                        pairs.get_or_insert_with(|| Pairs::of(&path)).has(*wanted)
                            && fits(pattern, &path)
                    }
                };
                if fits {
                    best = rank;
                }
            }
        }
        best.is_none_or(|(_, allows)| allows)
    }
}

/// Which pairs of characters are in a path, by their numbers.
struct Pairs([u64; PAIR_NUMBERS / 64]);

impl Pairs {
    fn of(path: &str) -> Self {
        let mut set = [0; PAIR_NUMBERS / 64];
        // Value 0 fills the array of a rule with fewer pairs, so every path contains it.
        set[0] = 1;
        for pair in path.as_bytes().windows(2) {
            let number = usize::from(pair_number(pair));
            set[number / 64] |= 1 << (number % 64);
        }
        Self(set)
    }

    fn has(&self, wanted: [u16; PAIRS]) -> bool {
        wanted.iter().all(|number| self.0[usize::from(*number) / 64] >> (number % 64) & 1 == 1)
    }
}

fn pair_number(pair: &[u8]) -> u16 {
    let number = u32::from(pair[0]) << 8 | u32::from(pair[1]);
    // Never 0, which stands for no pair.
    (number.wrapping_mul(0x9E37_79B1) >> 20).max(1) as u16
}

/// The pairs of characters that a path must have for a pattern to fit, by their numbers.
fn pairs_in(text: &str) -> impl Iterator<Item = u16> {
    text.split('*').flat_map(|part| part.as_bytes().windows(2).map(pair_number))
}

/// The pairs of a pattern that occur in the fewest patterns: they exclude most patterns.
fn rarest_pairs(text: &str, counts: &[u32]) -> [u16; PAIRS] {
    let mut numbers: Vec<u16> = pairs_in(text).collect();
    numbers.sort_unstable_by_key(|number| (counts[usize::from(*number)], *number));
    numbers.dedup();
    let mut pairs = [0; PAIRS];
    pairs.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    pairs
}

/// Whether a pattern with `*` and `$` matches the beginning of a path. Reads the path once, for any
/// pattern.
pub(super) fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !to_the_end || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if to_the_end && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// A normalised spelling: unreserved characters are not percent-encoded, and other
/// percent-encodings are in capital letters.
pub(super) fn normal(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let hex = |at: usize| bytes.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        if byte == b'%'
            && let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2))
        {
            let decoded = (high * 16 + low) as u8;
            if decoded.is_ascii_alphanumeric() || matches!(decoded, b'-' | b'.' | b'_' | b'~') {
                out.push(char::from(decoded));
            } else {
                let _ = write!(out, "%{decoded:02X}");
            }
            at += 3;
            continue;
        }
        if byte.is_ascii_graphic() {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rules, one by one.
    fn allow_slowly(paths: &[(String, bool)], path: &str) -> bool {
        let path = normal(path);
        let matching = paths.iter().filter(|(pattern, _)| fits(pattern, &path));
        matching
            .max_by_key(|(pattern, allows)| (pattern.len(), *allows))
            .is_none_or(|(_, allows)| *allows)
    }

    proptest::proptest! {
        #[test]
        fn the_index_decides_as_all_rules_do_one_by_one(
            patterns in proptest::collection::vec(("[/a-c*$]{0,8}", proptest::bool::ANY), 0..40),
            paths in proptest::collection::vec("/[/a-c$]{0,10}", 1..20),
        ) {
            let patterns: Vec<_> = patterns.into_iter().map(|(text, allows)| (normal(&text), allows)).collect();
            let rules = Rules::new(patterns.clone());
            for path in &paths {
                proptest::prop_assert_eq!(rules.allow(path), allow_slowly(&patterns, path), "{} {:?}", path, patterns);
            }
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let hostile = format!("/{}", "a*".repeat(2_000));
        assert!(!fits(&format!("{hostile}b"), &format!("/{}", "a".repeat(8_000))));
        let nested: Vec<_> =
            (0..5_000).map(|count| (format!("/{}", "a".repeat(count)), count % 2 == 0)).collect();
        let rules = Rules::new(nested);
        assert!(
            rules.allow(&"/".repeat(5_000)) && !rules.allow(&format!("/{}b", "a".repeat(2_501)))
        );
    }
}
