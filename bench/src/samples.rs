//! Statistics of several measurements: median, smallest and largest.

/// Measurements of one thing, one a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The last one; NaN when there is none.
    pub(crate) fn last(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The value that so large a part does not exceed: 0.99 for p99. NaN when there is none.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// NaN when there is none.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            length if length % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    pub(crate) fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().copied().map(change).collect())
    }

    /// This over `other`, round by round, since both of a round ran under the same load. When one
    /// has fewer rounds, this over the other's median.
    pub(crate) fn over(&self, other: &Self) -> Self {
        if self.0.len() == other.0.len() {
            return Self(self.0.iter().zip(&other.0).map(|(one, two)| one / two).collect());
        }
        let median = other.median();
        self.map(|value| value / median)
    }

    /// `median (min – max)`.
    pub(crate) fn text(&self) -> String {
        match self.0.len() {
            0 => "–".to_owned(),
            1 => number(self.0[0]),
            _ => format!(
                "{} ({} – {})",
                number(self.median()),
                number(self.min()),
                number(self.max())
            ),
        }
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Three significant digits; whole numbers as they are; separators from a thousand on.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "–".to_owned()
    } else if size < 1_000.0 && value.fract() == 0.0 {
        format!("{value:.0}")
    } else if size >= 1_000.0 {
        let digits = format!("{size:.0}");
        let grouped: Vec<&str> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(|group| std::str::from_utf8(group).unwrap_or_default())
            .collect();
        format!("{}{}", if value < 0.0 { "−" } else { "" }, grouped.join(","))
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else if size >= 0.01 {
        format!("{value:.3}")
    } else {
        format!("{value:.5}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_lies_between_the_two_in_the_middle() {
        assert!((Samples(vec![3.0, 1.0, 2.0]).median() - 2.0).abs() < 1e-9);
        assert!((Samples(vec![4.0, 1.0, 2.0, 3.0]).median() - 2.5).abs() < 1e-9);
        assert!(Samples::default().median().is_nan());
    }

    #[test]
    fn a_quantile_is_a_value_that_was_measured() {
        let hundred: Samples = (1..=100).rev().map(f64::from).collect();
        for (part, value) in [(0.99, 99.0), (0.5, 50.0), (1.0, 100.0)] {
            assert!((hundred.quantile(part) - value).abs() < 1e-9);
        }
        assert!((Samples(vec![7.0]).quantile(0.99) - 7.0).abs() < 1e-9);
        assert!(Samples::default().quantile(0.99).is_nan());
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let ratio = Samples(vec![2.0, 8.0]).over(&Samples(vec![1.0, 2.0]));
        assert_eq!(ratio, Samples(vec![2.0, 4.0]));
        assert_eq!(Samples(vec![2.0]).over(&Samples(vec![1.0, 3.0])), Samples(vec![1.0]));
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [1_234_567.0, 999.4, 12.34, 1.0, 0.0123, 0.0].map(number);
        assert_eq!(shown, ["1,234,567", "999", "12.3", "1", "0.012", "0"]);
    }
}
