//! Figures of the last 24 hours, in memory: one sample a minute.

use abreast_core::{Clock as _, SystemClock};
use abreast_maintenance::free_bytes;
use abreast_server::CurrentSite;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two samples.
const PERIOD: Duration = Duration::from_secs(60);
/// Most samples: one a minute for 24 hours.
const SAMPLES_MAX: usize = 1_440;
/// Seconds that a bar of a chart covers.
const BAR_SECONDS: i64 = 900;
/// Bars of a chart: 24 hours.
const BARS: usize = 96;

/// The figures at an instant; totals are since the start of the program.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// Seconds since 1970.
    time: i64,
    requests: f64,
    failures: f64,
    delivered: f64,
    delivery_lag: Mean,
    publish_lag: Mean,
    free: Option<f64>,
}

/// Sum and number of measured values.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

/// A figure that has a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Requests that were answered.
    Requests,
    /// Answers with a server error, failed deliveries and failed dumps.
    Failures,
    /// Notifications that recipients accepted.
    Delivered,
    /// Mean seconds from a notification to its acceptance by a recipient.
    DeliveryLag,
    /// Mean seconds from a change of a file to its publication.
    PublishLag,
    /// Free bytes of the disk with the store.
    FreeDisk,
}

/// The samples, taken by a thread until this is dropped.
pub struct Samples {
    taken: Arc<Mutex<VecDeque<Sample>>>,
    place: Place,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Where samples are taken.
#[derive(Clone)]
struct Place {
    site: Weak<CurrentSite>,
    data: PathBuf,
}

impl Samples {
    /// Starts the thread, for a server with its store in `data`.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(site: &Arc<CurrentSite>, data: PathBuf) -> io::Result<Self> {
        let taken: Arc<Mutex<VecDeque<Sample>>> = Arc::default();
        let (stop, stopped) = mpsc::channel();
        let place = Place { site: Arc::downgrade(site), data };
        let (kept, from) = (Arc::clone(&taken), place.clone());
        let work = move || {
            loop {
                let Some(sample) = from.sample() else { return };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(sample);
                if kept.len() > SAMPLES_MAX {
                    kept.pop_front();
                }
                drop(kept);
                if stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("samples".into()).spawn(work)?;
        Ok(Self { taken, place, stop: Some(stop), thread: Some(thread) })
    }

    /// All samples, and one of now.
    pub(crate) fn now(&self) -> History {
        let mut samples: Vec<Sample> =
            self.taken.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        samples.extend(self.place.sample());
        History(samples)
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Place {
    /// The figures of now; `None` once the server has ended.
    fn sample(&self) -> Option<Sample> {
        let text = self.site.upgrade()?.metrics_text();
        let mut sample = Sample::of(&text);
        sample.time = SystemClock.now().as_seconds();
        sample.free = free_bytes(&self.data).map(|bytes| bytes as f64);
        Some(sample)
    }
}

impl Sample {
    /// The totals in a text for Prometheus.
    fn of(text: &str) -> Self {
        let mut sample = Self::default();
        for line in text.lines().filter(|line| line.starts_with("abreast_")) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            match name {
                "abreast_http_responses_total" => {
                    sample.requests += value;
                    if labels.contains("\"5xx\"") {
                        sample.failures += value;
                    }
                }
                "abreast_hub_failed_total" => sample.failures += value,
                "abreast_dumps_total" if labels.contains("\"failed\"") => sample.failures += value,
                "abreast_hub_delivered_total" => sample.delivered += value,
                "abreast_hub_delivery_lag_seconds_sum" => sample.delivery_lag.sum += value,
                "abreast_hub_delivery_lag_seconds_count" => sample.delivery_lag.count += value,
                "abreast_source_publish_lag_seconds_sum" => sample.publish_lag.sum += value,
                "abreast_source_publish_lag_seconds_count" => sample.publish_lag.count += value,
                _ => {}
            }
        }
        sample
    }
}

/// Samples, the oldest first.
pub(crate) struct History(Vec<Sample>);

impl History {
    /// A value for each quarter of an hour, the oldest first; `None` if there is no sample.
    pub(crate) fn bars(&self, figure: Figure) -> Vec<Option<f64>> {
        let Some(now) = self.0.last().map(|sample| sample.time) else { return vec![None; BARS] };
        let mut bars: Vec<Option<Mean>> = vec![None; BARS];
        for pair in self.0.windows(2) {
            let age = (now - pair[1].time).max(0) / BAR_SECONDS;
            let Some(bar) = usize::try_from(age).ok().and_then(|age| BARS.checked_sub(age + 1))
            else {
                continue;
            };
            let part = figure.between(&pair[0], &pair[1]);
            let bar = bars[bar].get_or_insert_default();
            bar.sum += part.sum;
            bar.count += part.count;
        }
        bars.into_iter().map(|bar| bar.and_then(|bar| figure.value(bar))).collect()
    }
}

impl Figure {
    fn between(self, earlier: &Sample, later: &Sample) -> Mean {
        let total = |of: fn(&Sample) -> f64| Mean { sum: of(later) - of(earlier), count: 1.0 };
        let mean = |of: fn(&Sample) -> Mean| {
            let (a, b) = (of(earlier), of(later));
            Mean { sum: b.sum - a.sum, count: b.count - a.count }
        };
        match self {
            Self::Requests => total(|sample| sample.requests),
            Self::Failures => total(|sample| sample.failures),
            Self::Delivered => total(|sample| sample.delivered),
            Self::DeliveryLag => mean(|sample| sample.delivery_lag),
            Self::PublishLag => mean(|sample| sample.publish_lag),
            Self::FreeDisk => match later.free {
                Some(free) => Mean { sum: free, count: 1.0 },
                None => Mean::default(),
            },
        }
    }

    fn value(self, bar: Mean) -> Option<f64> {
        match self {
            Self::Requests | Self::Failures | Self::Delivered => Some(bar.sum.max(0.0)),
            Self::DeliveryLag | Self::PublishLag | Self::FreeDisk => {
                (bar.count > 0.0).then(|| bar.sum / bar.count)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_the_metrics() {
        let sample = Sample::of(
            "# HELP abreast_http_responses_total x\nabreast_http_responses_total{class=\"2xx\"} 7\n\
             abreast_http_responses_total{class=\"5xx\"} 2\nabreast_hub_failed_total 3\nabreast_hub_delivered_total 11\n\
             abreast_dumps_total{set=\"a\",kind=\"resources\",result=\"failed\"} 1\n\
             abreast_hub_delivery_lag_seconds_sum 4.5\nabreast_hub_delivery_lag_seconds_count 9\nother 1\nabreast_x NaN\n",
        );
        assert_eq!((sample.requests, sample.failures, sample.delivered), (9.0, 6.0, 11.0));
        assert_eq!((sample.delivery_lag.sum, sample.delivery_lag.count), (4.5, 9.0));
    }

    #[test]
    fn bars_have_what_happened_in_their_time() {
        let at = |time, requests, lag: (f64, f64)| Sample {
            time,
            requests,
            delivery_lag: Mean { sum: lag.0, count: lag.1 },
            free: Some(100.0 - requests),
            ..Sample::default()
        };
        let history = History(vec![
            at(0, 0.0, (0.0, 0.0)),
            at(60, 10.0, (1.0, 2.0)),
            at(1_000, 14.0, (1.0, 2.0)),
            at(1_060, 15.0, (7.0, 4.0)),
        ]);
        let last = |figure| history.bars(figure)[BARS - 2..].to_vec();
        assert_eq!(last(Figure::Requests), [Some(10.0), Some(5.0)]);
        assert_eq!(last(Figure::DeliveryLag), [Some(0.5), Some(3.0)]);
        assert_eq!(last(Figure::FreeDisk), [Some(90.0), Some(85.5)]);
        assert_eq!(history.bars(Figure::Requests)[..BARS - 2], [None; BARS - 2]);
        assert_eq!(History(Vec::new()).bars(Figure::Requests), [None; BARS]);
    }
}
