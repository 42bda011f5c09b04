//! Results of deliveries, and the pause before the next attempt.

use crate::deliver::lanes::ExchangeEnd;
use crate::deliver::options::Retries;
use crate::message::text;
use abreast_net::{Answer, Error, ErrorKind};
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

/// Help for an address that is not public.
const PRIVATE_HELP: &str =
    "set `private_callbacks = true` in [hub] to allow private addresses, also to subscribers";

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// 2xx: the receiver accepted the notification [websub §7].
    Taken(u16),
    /// 410: the receiver does not want further notifications.
    Gone,
    /// Any other result, also a redirect: to be tried again.
    Failed {
        status: Option<u16>,
        error: String,
        /// Help text for the operator, if there is one.
        help: Option<&'static str>,
        /// The pause that the receiver requested.
        pause: Option<Duration>,
        contact: ExchangeEnd,
    },
}

impl Outcome {
    pub(crate) fn failed(status: Option<u16>, error: String, contact: ExchangeEnd) -> Self {
        Self::Failed { status, error, help: None, pause: None, contact }
    }

    pub(crate) fn of(result: Result<Answer, Error>, most_pause: Duration) -> Self {
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => {
                let contact = match error.kind() {
                    ErrorKind::Connect | ErrorKind::Dns | ErrorKind::Tls | ErrorKind::Private => {
                        ExchangeEnd::Unreachable
                    }
                    _ => ExchangeEnd::Silent,
                };
                let failed = Self::failed(None, text::failure(&error), contact);
                return match error.kind() {
                    ErrorKind::Private => failed.with_help(PRIVATE_HELP),
                    _ => failed,
                };
            }
        };
        let status = answer.status;
        if status.is_success() {
            return Self::Taken(status.as_u16());
        }
        if status.as_u16() == 410 {
            return Self::Gone;
        }
        let asked =
            answer.headers.get("retry-after").filter(|_| matches!(status.as_u16(), 429 | 503));
        let pause = asked
            .and_then(|value| value.to_str().ok())
            .and_then(|value| abreast_net::retry_after(value, SystemTime::now()))
            .map(|pause| pause.min(most_pause));
        let error = if status.is_redirection() {
            format!("the callback answered {status}; redirects are not followed")
        } else {
            format!("the callback answered {status}")
        };
        Self::Failed {
            status: Some(status.as_u16()),
            error,
            help: None,
            pause,
            contact: ExchangeEnd::Answered,
        }
    }

    /// The same failure with help for the operator.
    pub(crate) fn with_help(mut self, text: &'static str) -> Self {
        if let Self::Failed { help, .. } = &mut self {
            *help = Some(text);
        }
        self
    }

    /// Outcome for a node to which this hub cannot publish.
    pub(crate) fn no_xmpp(why: &str) -> Self {
        Self::failed(None, format!("cannot publish to a node: {why}"), ExchangeEnd::Answered)
    }

    /// Outcome of an exchange that the hub aborted because others waited for its place.
    pub(crate) fn cut_off(after: Duration) -> Self {
        let error = format!(
            "no answer within {} ms, and other deliveries were waiting (net.timeout)",
            after.as_millis()
        );
        Self::failed(None, error, ExchangeEnd::Silent)
    }

    pub(crate) fn contact(&self) -> ExchangeEnd {
        match self {
            Self::Failed { contact, .. } => *contact,
            Self::Taken(_) | Self::Gone => ExchangeEnd::Answered,
        }
    }
}

/// A random part of a time that doubles with each failure, so that attempts do not coincide. At
/// least a tenth of the first time.
pub(crate) fn backoff(retries: &Retries, failures: u32) -> Duration {
    let doubled =
        retries.base.saturating_mul(1 << failures.saturating_sub(1).min(30)).min(retries.most);
    random_part(doubled).max(retries.base / 10)
}

fn random_part(of: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8);
    of.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_are_spread() {
        let retries = Retries {
            base: Duration::from_secs(1),
            most: Duration::from_secs(3_600),
            give_up: Duration::MAX,
            retry_after: Duration::MAX,
        };
        for (failures, most) in
            [(1, 1), (2, 2), (5, 16), (12, 2_048), (13, 3_600), (u32::MAX, 3_600)]
        {
            let pauses: Vec<_> = (0..200).map(|_| backoff(&retries, failures)).collect();
            let longest = pauses.iter().max().unwrap();
            assert!(
                *longest <= Duration::from_secs(most) && *longest > Duration::from_secs(most) / 2,
                "{longest:?}"
            );
            assert!(pauses.iter().all(|pause| *pause >= Duration::from_millis(100)));
        }
    }
}
