//! Retries and resources in work, as a run reports them to a meter.

use abreast_core::{Meter, Retry};
use abreast_net::{ErrorKind, Options, RepeatedRequest, RetryListener};
use std::error::Error as _;
use std::time::Instant;

/// The options of a client that reports its retries to a meter.
pub(crate) fn with_meter(net: Options, meter: &Meter) -> Options {
    if !meter.is_listening() {
        return net;
    }
    let meter = meter.clone();
    let on_retry = RetryListener::new(move |repeated| meter.retry(retry_of(repeated)));
    Options { on_retry, ..net }
}

fn retry_of(repeated: &RepeatedRequest<'_>) -> Retry {
    let url = repeated.error.url();
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    Retry {
        host: host.split(['/', '?', '#']).next().unwrap_or_default().to_owned(),
        due: Instant::now() + repeated.wait,
        attempt: repeated.attempt,
        attempts: repeated.attempts,
        cause: cause_of(repeated.error),
    }
}

/// The cause in a few words: of a failed connection, that of the operating system.
fn cause_of(error: &abreast_net::Error) -> String {
    let source = error.source().filter(|_| error.kind() == ErrorKind::Connect);
    let text = source.map_or_else(|| error.reason().to_owned(), ToString::to_string);
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// The name of a resource for a display: its URI without scheme and host, which are mostly the same.
pub(crate) fn short_name(uri: &str) -> String {
    let path = uri.split_once("://").and_then(|(_, rest)| Some(rest.split_once('/')?.1));
    path.filter(|path| !path.is_empty()).unwrap_or(uri).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_scheme_and_host() {
        assert_eq!(short_name("http://me:hush@h/a/b%20c?d"), "a/b%20c?d");
        assert_eq!(short_name("http://h/"), "http://h/");
        assert_eq!(short_name("urn:x:1"), "urn:x:1");
    }
}
