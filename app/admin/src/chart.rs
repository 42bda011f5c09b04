//! Charts as SVG: bars from the oldest value to the newest.
//!
//! Colours come from the style sheet of the pages, since their policy allows no other styles.

use askama::Template;
use askama::filters::Safe;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 96.0;

/// A chart with its caption.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// The largest value and the newest, in words.
    pub(crate) summary: String,
    /// The time that the chart covers, such as `24 h`.
    pub(crate) span: &'static str,
    pub(crate) bars: Vec<Bar>,
}

/// A bar, in units of the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

#[derive(Template)]
#[template(path = "chart.html")]
struct ChartTemplate<'c> {
    chart: &'c Chart,
}

impl Chart {
    /// A chart of values from the oldest to the newest; `shown` writes a value with its unit.
    pub(crate) fn new(
        title: &'static str,
        span: &'static str,
        values: &[Option<f64>],
        shown: impl Fn(f64) -> String,
    ) -> Self {
        let known = || values.iter().flatten().copied();
        let largest = known().fold(0.0, f64::max);
        let summary = match known().next_back() {
            Some(newest) => format!("at most {}, now {}", shown(largest), shown(newest)),
            None => "no values yet".to_owned(),
        };
        let step = WIDTH / values.len().max(1) as f64;
        let bar = |(at, value): (usize, &Option<f64>)| {
            let height = if largest > 0.0 { (*value)? / largest * HEIGHT } else { 0.0 };
            // Tenths are exact enough, and keep pages small.
            let tenths = |length: f64| (length * 10.0).round() / 10.0;
            let (height, width) = (tenths(height), tenths(step * 0.8));
            (height > 0.0).then(|| Bar {
                x: tenths(at as f64 * step),
                y: tenths(HEIGHT - height),
                width,
                height,
            })
        };
        Self { title, summary, span, bars: values.iter().enumerate().filter_map(bar).collect() }
    }

    /// The chart as HTML.
    pub(crate) fn html(&self) -> Safe<String> {
        Safe(ChartTemplate { chart: self }.render().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bar_has_the_full_height() {
        let chart = Chart::new("T", "4 h", &[None, Some(0.0), Some(2.0), Some(4.0)], |value| {
            value.to_string()
        });
        assert_eq!(chart.summary, "at most 4, now 4");
        assert_eq!(
            chart.bars,
            [
                Bar { x: 240.0, y: 48.0, width: 96.0, height: 48.0 },
                Bar { x: 360.0, y: 0.0, width: 96.0, height: 96.0 },
            ]
        );
        let html = chart.html().0;
        assert!(html.contains("role=\"img\"") && html.contains("T: at most 4, now 4"), "{html}");
    }

    #[test]
    fn a_chart_without_values_has_no_bars() {
        let chart = Chart::new("T", "24 h", &[None, None], |value| value.to_string());
        assert_eq!((chart.summary.as_str(), chart.bars.len()), ("no values yet", 0));
        assert!(Chart::new("T", "24 h", &[Some(0.0)], |value| value.to_string()).bars.is_empty());
    }
}
