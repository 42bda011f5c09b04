//! Range requests [rfc9110 §14].

/// Most ranges in a request. Requests with more are attacks, and the answer is the whole
/// representation.
const MAX_RANGES: usize = 16;

/// A parsed Range header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    /// The whole representation: the header is missing, or may be ignored.
    Whole,
    /// Ranges of bytes `start ..= end`.
    Ranges(Vec<(u64, u64)>),
    /// 416: no range is inside the representation.
    Unsatisfiable,
}

/// Parses a Range header for a representation of this length.
pub(crate) fn wanted(header: Option<&str>, length: u64) -> RequestedRange {
    let Some((unit, list)) = header.and_then(|header| header.split_once('=')) else {
        return RequestedRange::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRange::Whole;
    }
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (number, range) in
        list.split(',').map(str::trim).filter(|range| !range.is_empty()).enumerate()
    {
        let Some((first, last)) = range.split_once('-') else { return RequestedRange::Whole };
        if number >= MAX_RANGES
            || !(first.bytes().chain(last.bytes())).all(|byte| byte.is_ascii_digit())
        {
            return RequestedRange::Whole;
        }
        let range = match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), Ok(last)) if first > last => return RequestedRange::Whole,
            (Ok(first), Ok(last)) => (first, last.min(length.saturating_sub(1))),
            (Ok(first), Err(_)) if last.is_empty() => (first, length.saturating_sub(1)),
            (Err(_), Ok(suffix)) if first.is_empty() && suffix > 0 => {
                (length.saturating_sub(suffix), length.saturating_sub(1))
            }
            (Err(_), Ok(_)) if first.is_empty() => continue,
            _ => return RequestedRange::Whole,
        };
        if range.0 < length {
            ranges.push(range);
        }
    }
    // With overlapping ranges the same bytes would be sent many times.
    let mut sorted = ranges.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[1].0 <= pair[0].1) {
        return RequestedRange::Whole;
    }
    if ranges.is_empty() { RequestedRange::Unsatisfiable } else { RequestedRange::Ranges(ranges) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_in_the_rfc() {
        let of = |header| wanted(Some(header), 100);
        assert_eq!(of("bytes=0-9"), RequestedRange::Ranges(vec![(0, 9)]));
        assert_eq!(of("bytes=90-"), RequestedRange::Ranges(vec![(90, 99)]));
        assert_eq!(of("bytes=-5"), RequestedRange::Ranges(vec![(95, 99)]));
        assert_eq!(of("bytes=-500"), RequestedRange::Ranges(vec![(0, 99)]));
        assert_eq!(of("bytes=50-500, 0-0"), RequestedRange::Ranges(vec![(50, 99), (0, 0)]));
        assert_eq!(of("bytes=100-"), RequestedRange::Unsatisfiable);
        assert_eq!(of("bytes=-0"), RequestedRange::Unsatisfiable);
        for ignored in
            ["bytes=9-0", "items=0-1", "bytes=a-b", "bytes=0-5,3-9", "bytes=0", "bytes=+1-2"]
        {
            assert_eq!(of(ignored), RequestedRange::Whole, "{ignored}");
        }
        let many =
            format!("bytes={}", (0..40).map(|n| format!("{n}-{n}")).collect::<Vec<_>>().join(","));
        assert_eq!(of(&many), RequestedRange::Whole);
        assert_eq!(wanted(None, 100), RequestedRange::Whole);
        assert_eq!(wanted(Some("bytes=0-0"), 0), RequestedRange::Unsatisfiable);
    }
}
