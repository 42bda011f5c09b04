//! Retries: which requests are repeated, and after which delay.

use crate::limits::pause::jitter;
use std::time::Duration;

use crate::address::error::{Error, ErrorKind};
use crate::fetch::client::Client;
use crate::fetch::request::Request;
use crate::fetch::response::Response;
use crate::settings::options::Options;
use crate::settings::retry_listener::RepeatedRequest;

/// Calls `attempt` until it succeeds, fails permanently, or has been repeated `retries` times.
///
/// Transient errors are repeated: connection and transfer failures, and the statuses 429, 502, 503
/// and 504 when the attempt turned them into errors by
/// [`Response::require_success`](crate::Response::require_success). The wait doubles each time and
/// is spread at random. A usable `Retry-After` replaces it and pauses the whole host for all
/// clients of the same [`Shared`](crate::Shared). `attempt` gets the number of attempts made
/// before; `url` is added to errors without a URL.
///
/// # Errors
/// The last attempt's error; [`Error::attempts`] returns how many there were.
pub async fn with_retries<T>(
    client: &Client,
    url: &str,
    mut attempt: impl AsyncFnMut(u32) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut retries = Retries::default();
    loop {
        match attempt(retries.made()).await {
            Ok(value) => return Ok(value),
            Err(error) => retries.wait_after(client, error.with_url(url)).await?,
        }
    }
}

/// Counts the attempts at one request and waits between them. This is [`with_retries`] for callers
/// that write the loop themselves, which is necessary if the future has to be `Send`. The first
/// failure to reach a host is logged as a warning, once for each [`Shared`](crate::Shared).
#[derive(Debug, Default)]
pub struct Retries(u32);

impl Retries {
    /// Number of failed attempts so far.
    pub fn made(&self) -> u32 {
        self.0
    }

    /// Waits until the next attempt is due.
    ///
    /// # Errors
    /// The given error, if it is permanent or all retries were used.
    pub async fn wait_after(&mut self, client: &Client, error: Error) -> Result<(), Error> {
        let shared = client.shared();
        let pause = error.retry_after().map(|pause| pause.min(shared.options.max_retry_after));
        if let Some(pause) = pause {
            // Also when this request is given up: the pause applies to the host, and other requests
            // follow.
            client.pause(error.url(), pause);
        }
        if !error.is_transient() || self.0 >= client.retries() {
            return Err(error.with_attempts(self.0 + 1));
        }
        let wait = match pause {
            Some(pause) => pause + jitter(Duration::from_secs(1).min(pause / 4)),
            None => backoff(&shared.options, self.0),
        };
        tracing::debug!(code = error.code(), url = error.url(), ?wait, "request will be repeated");
        // Report at once that the address may be wrong.
        if matches!(error.kind(), ErrorKind::Dns | ErrorKind::Connect | ErrorKind::Timeout)
            && client.is_first_report(error.url())
        {
            let left = client.retries() - self.0;
            tracing::warn!("{}; trying again (retries left: {left})", error.summary());
        }
        self.0 += 1;
        let (attempt, attempts) = (self.0, client.retries());
        shared.options.on_retry.tell(&RepeatedRequest { error: &error, wait, attempt, attempts });
        shared.count_retry();
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

impl Client {
    /// Fetches a URL into a buffer with retries: [`send`](Self::send),
    /// [`Response::require_success`] and [`Response::read_to`], repeated as by
    /// [`with_retries`](crate::with_retries). The buffer is cleared first.
    ///
    /// # Errors
    /// Every code of [`Error::code`].
    pub async fn fetch_to(
        &self,
        request: &Request<'_>,
        body: &mut Vec<u8>,
        limit: u64,
    ) -> Result<Response, Error> {
        let mut retries = Retries::default();
        loop {
            match self.fetch_once(request, body, limit).await {
                Ok(response) => return Ok(response),
                Err(error) => retries.wait_after(self, error).await?,
            }
        }
    }

    async fn fetch_once(
        &self,
        request: &Request<'_>,
        body: &mut Vec<u8>,
        limit: u64,
    ) -> Result<Response, Error> {
        body.clear();
        let mut response = self.send(request).await?.require_success()?;
        response.read_to(body, limit).await?;
        Ok(response)
    }
}

/// The base, doubled per attempt up to the cap; the pause is a random time from half of this to
/// all.
fn backoff(options: &Options, made: u32) -> Duration {
    let full = options.backoff_base.saturating_mul(1 << made.min(20)).min(options.backoff_cap);
    full / 2 + jitter(full / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::pause::retry_after;

    #[test]
    fn retry_after_takes_seconds_and_dates_and_nothing_absurd() {
        let now = httpdate::parse_http_date("Fri, 02 Jan 2026 00:00:00 GMT").unwrap();
        let seconds = |value| retry_after(value, now).map(|d| d.as_secs());
        assert_eq!(seconds("2"), Some(2));
        assert_eq!(seconds(" 7200 "), Some(7200));
        assert_eq!(seconds("Fri, 02 Jan 2026 00:01:00 GMT"), Some(60));
        for bad in [
            "",
            "0",
            "-1",
            "soon",
            "1.5",
            "1000000000",
            "99999999999999999999999",
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "Fri, 02 Jan 2099 00:00:00 GMT",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn backoff_doubles_up_to_its_cap_and_is_spread() {
        let options = Options::default();
        for (made, most) in [(0, 500), (1, 1_000), (4, 8_000), (7, 60_000), (4_000_000, 60_000)] {
            let wait = backoff(&options, made).as_millis();
            assert!((most / 2..=most).contains(&wait), "attempt {made}: {wait} ms");
        }
        assert_ne!(backoff(&options, 5), backoff(&options, 5));
    }
}
