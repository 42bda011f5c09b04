//! The network path to an address, and the documents of a Source there.

use crate::doctor::diagnosis::Doctor;
use crate::doctor::subject::AddressSubject;
use crate::place::{Error, Result};
use abreast_net::{Client, Options, Request, Shared};
use abreast_validator::Share;
use abreast_webtypes::without_login;
use std::time::Duration;

/// Clocks further apart make times of changes misleading.
const CLOCK_APART: i64 = 60;
/// Bytes of an answer that are read.
const ANSWER_MAX: u64 = 64 << 20;
/// Addresses of a host that are printed.
const ADDRESSES_SHOWN: usize = 4;
/// Documents of an address that are read.
const DOCUMENTS_MAX: usize = 20;
/// Longest time to read them.
const SOURCE_TIME: Duration = Duration::from_secs(10);

/// Checks the network path to an address, and whether documents are found there.
pub(super) fn check_address(doctor: &mut Doctor<'_>, subject: &AddressSubject<'_>) {
    let text = subject.url.as_str();
    let (Ok(()), Ok(url)) = (abreast_net::check_url(text), url::Url::parse(text)) else {
        let what = format!("{} is not an http or https URL", without_login(text));
        doctor.report("url", false, &what, "give an address such as https://papers.example.org/");
        doctor.error = Some(Error::Usage(what));
        return;
    };
    let mut options =
        Options { connect_timeout: Duration::from_secs(10), retries: 0, ..Options::default() };
    let proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"];
    let mut proxies: Vec<&str> = proxies
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if subject.has_proxy {
        proxies = vec!["--proxy or ABREAST_PROXY"];
    }
    let what = if proxies.is_empty() {
        "none set".to_owned()
    } else {
        format!("set by {}", proxies.join(", "))
    };
    let text = match (subject.access)(&mut options) {
        Ok(text) => text,
        Err(what) => {
            doctor.report("access", false, &what, "correct the option or variable");
            doctor.error = Some(Error::Usage(what));
            return;
        }
    };
    let text = text.as_str();
    doctor.report("proxy", true, &what, "");
    if proxies.is_empty()
        && let Some(host) = url.host_str()
    {
        use std::net::ToSocketAddrs as _;
        let found = (host.trim_matches(['[', ']']), url.port_or_known_default().unwrap_or(80))
            .to_socket_addrs();
        let found =
            found.map(|found| found.take(ADDRESSES_SHOWN).map(|address| address.ip().to_string()));
        let is_found = found.is_ok();
        let what = match found {
            Ok(addresses) => {
                format!("{host} resolves to {}", addresses.collect::<Vec<_>>().join(", "))
            }
            Err(error) => format!("{host}: {error}"),
        };
        doctor.report("dns", is_found, &what, "check the name and the resolver (/etc/resolv.conf)");
    }
    let for_source = options.clone();
    let asked = || -> Result<(u16, Option<i64>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = Client::new(Shared::new(options));
        runtime.block_on(async {
            let mut response = client.send(&Request::new(text)).await?;
            // Compare clocks here: reading the rest of the answer takes time.
            let apart = response.header("date").and_then(seconds_apart);
            let status = response.status().as_u16();
            response.read_to(&mut Vec::new(), ANSWER_MAX).await?;
            Ok((status, apart))
        })
    };
    match asked() {
        Ok((status, apart)) => {
            let (good, help) = match status {
                500.. => (false, "read the server's log"),
                401 | 403 | 407 => (false, "give a login: --user, --token-file or --netrc"),
                400.. => (false, "check the address"),
                _ => (true, ""),
            };
            doctor.report("answer", good, &format!("{text} answers with {status}"), help);
            if let Some(apart) = apart {
                let what = clocks(apart);
                doctor.report(
                    "clocks",
                    apart.abs() <= CLOCK_APART,
                    &what,
                    "set both clocks, for example with NTP",
                );
            }
            if good {
                source(doctor, text, for_source);
            }
        }
        Err(error) => {
            let net = if let Error::Net(error) = &error { Some(error) } else { None };
            let help = net.and_then(abreast_net::Error::help).unwrap_or(
                "names, proxies, certificates and firewalls stand in between; `abreast sync --help` has the options",
            );
            let messages = error.messages();
            let causes = messages.iter().map(|cause| cause.lines().next().unwrap_or_default());
            doctor.report("answer", false, &causes.collect::<Vec<_>>().join(": "), help);
            // The Source's documents may have other addresses, which can work in spite of this error.
            if net.is_some_and(|error| error.kind() == abreast_net::ErrorKind::Header) {
                source(doctor, text, for_source);
            }
            doctor.error = Some(error);
        }
    }
}

/// Whether documents that `abreast sync` reads are found from an address.
fn source(doctor: &mut Doctor<'_>, url: &str, net: Options) {
    let mut options = abreast_validator::Options::new(vec![url.to_owned()]);
    options.net = net;
    // A set that asks for a pause does not delay the report on the others.
    (options.net.max_retry_after, options.net.idle_timeout) = (Duration::ZERO, SOURCE_TIME);
    (options.sample, options.packages) = (Share::Some(0), Share::Some(0));
    (options.max_documents, options.max_time) = (DOCUMENTS_MAX, SOURCE_TIME);
    (options.depth, options.connections) = (1, 1);
    let report = abreast_validator::validate(&options, &doctor.observer.cancel());
    let first = report.documents.iter().find(|document| document.problem.is_none());
    match first.filter(|_| report.found_source()) {
        Some(document) => {
            doctor.report("source", true, &format!("{} can be read", document.url), "");
        }
        None if report.limit == Some("--max-time") => doctor.report(
            "source",
            false,
            &format!("no document was found from {url} within {} s", SOURCE_TIME.as_secs()),
            "find out why the server is slow; `abreast explore URL` has no such limit",
        ),
        None => doctor.report(
            "source",
            false,
            &format!("{url} leads to no document of ResourceSync, SDShare or a change feed"),
            "give the URL of a Capability List, Resource List, Change List or Sitemap, of a feed of SDShare, or of an Entry Point",
        ),
    }
}

/// How far the clock of a server is from ours, for people.
fn clocks(apart: i64) -> String {
    let seconds = apart.unsigned_abs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let time = parts.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ");
    match apart {
        0 => "the server's clock has the time of this one".to_owned(),
        1.. => format!("the server's clock is {time} ahead of this one"),
        ..0 => format!("the server's clock is {time} behind this one"),
    }
}

/// How far another clock is ahead of ours.
fn seconds_apart(date: &str) -> Option<i64> {
    let there = jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_second();
    Some(there - jiff::Timestamp::now().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_clocks_has_units() {
        for (apart, expected) in [
            (0, "the server's clock has the time of this one"),
            (-3, "the server's clock is 3 s behind this one"),
            (93_784, "the server's clock is 1 d 2 h 3 min 4 s ahead of this one"),
        ] {
            assert_eq!(clocks(apart), expected);
        }
    }
}
