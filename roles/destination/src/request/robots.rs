//! Rules in a host's robots.txt. They apply to resources, but not to the documents that list the
//! resources [rfc9309 §2.5].
//!
//! The documents of a Source are published for programs, and the user chose the Source. The host
//! decides whether programs may fetch its resources.

pub(crate) mod fuzz_property;
mod rules;

use crate::report::failure::Failure;
use abreast_net::{Client, ErrorKind, Request};
use abreast_webtypes::robots_fields;
use rules::{Rules, normal};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use url::Url;

/// Number of bytes that are read of a robots.txt; the rest is ignored [rfc9309 §2.5].
const BYTES_MAX: u64 = 512 << 10;
/// Maximum number of rules for one host.
const RULES_MAX: usize = 5_000;
/// Maximum number of hosts whose rules are cached in a run.
const HOSTS_MAX: usize = 1_000;
/// Longest pause between requests that a host can require.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(30);
/// Time after which rules are requested again when following; the specification allows a day
/// [rfc9309 §2.4].
const ASK_AGAIN: Duration = Duration::from_secs(3_600);
/// The product token of this program in robots.txt.
const PRODUCT: &str = "abreast";

/// The rules of the hosts of a run, or of several while following, each requested once.
#[derive(Debug)]
pub(crate) struct Robots {
    since: Instant,
    /// The rules of at least one host could not be fetched.
    missed: AtomicBool,
    hosts: Mutex<HashMap<String, Arc<OnceCell<Asked>>>>,
}

#[derive(Debug)]
enum Asked {
    Rules(Read),
    /// The rules are not known: nothing is fetched from the host in this run [rfc9309 §2.3.1.4].
    Unreachable(String),
}

/// The rules of a robots.txt for this program.
#[derive(Debug, Default, PartialEq)]
struct Read {
    rules: Rules,
    delay: Option<Duration>,
}

/// The rules of some groups while they are parsed.
#[derive(Debug, Default)]
struct Written {
    /// Patterns, each with whether it allows access.
    paths: Vec<(String, bool)>,
    delay: Option<Duration>,
}

impl Default for Robots {
    fn default() -> Self {
        Self { since: Instant::now(), missed: AtomicBool::new(false), hosts: Mutex::default() }
    }
}

impl Robots {
    /// Whether the rules should be requested again.
    pub(crate) fn is_stale(&self) -> bool {
        self.since.elapsed() > ASK_AGAIN || self.missed.load(Ordering::Relaxed)
    }

    /// Checks that a resource may be fetched. The first check for a host requests its rules; with
    /// `public_only`, only from public addresses.
    pub(crate) async fn check(
        &self,
        client: &Client,
        uri: &str,
        public_only: bool,
    ) -> Result<(), Failure> {
        let Some((origin, cell)) = self.cell(uri) else { return Ok(()) };
        match cell.get_or_init(|| ask(client, &origin, public_only)).await {
            Asked::Rules(Read { rules, delay }) => {
                if let Some(delay) = *delay {
                    client.set_min_interval(&origin, delay);
                }
                if rules.allow(path_of(uri)) {
                    return Ok(());
                }
                Err(Failure::refused(
                    "robots.disallow",
                    "the host's robots.txt asks programs not to fetch it\n  help: with the host's consent, use `--ignore-robots`",
                ))
            }
            Asked::Unreachable(why) => {
                self.missed.store(true, Ordering::Relaxed);
                Err(Failure::new(
                    "robots.unreachable",
                    format!(
                        "what {origin}/robots.txt asks for is not known: {why}\n  help: try again later, or use `--ignore-robots`"
                    ),
                ))
            }
        }
    }

    /// Requests the rules of a host before its resources are known. They do not apply to the lists
    /// that are read meanwhile.
    pub(crate) async fn prepare(&self, client: &Client, uri: &str) {
        if let Some((origin, cell)) = self.cell(uri) {
            cell.get_or_init(|| ask(client, &origin, false)).await;
        }
    }

    /// The origin of a URI, and its rules, once they are known.
    fn cell<'u>(&self, uri: &'u str) -> Option<(Cow<'u, str>, Arc<OnceCell<Asked>>)> {
        // If the host is spelled as in the cache, the URI need not be parsed.
        let written = &uri[..host_end(uri)];
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = hosts.get(written) {
            return Some((Cow::Borrowed(written), Arc::clone(cell)));
        }
        let origin = Url::parse(uri).ok()?.origin().ascii_serialization();
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(&origin) {
            hosts.clear();
        }
        let cell = Arc::clone(hosts.entry(origin.clone()).or_default());
        Some((Cow::Owned(origin), cell))
    }
}

async fn ask(client: &Client, origin: &str, public_only: bool) -> Asked {
    let url = format!("{origin}/robots.txt");
    let mut body = Vec::new();
    let answer = abreast_net::with_retries(client, &url, async |_| {
        body.clear();
        let mut response = client
            .send(&Request { accept_gzip: true, public_only, ..Request::new(&url) })
            .await?
            .require_success()?;
        match response.read_to(&mut body, BYTES_MAX).await {
            Err(error) if error.kind() != ErrorKind::Size => Err(error),
            _ => Ok(()),
        }
    })
    .await;
    match answer {
        Ok(()) => Asked::Rules(parse(&String::from_utf8_lossy(&body))),
        // The file does not exist or cannot be read, so there are no rules [rfc9309 §2.3.1.3].
        Err(error)
            if error
                .status()
                .is_some_and(|status| (400..500).contains(&status) && status != 429) =>
        {
            Asked::Rules(Read::default())
        }
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Redirect | ErrorKind::Downgrade | ErrorKind::Encoding
            ) =>
        {
            Asked::Rules(Read::default())
        }
        Err(error) => {
            Asked::Unreachable(error.to_string().lines().next().unwrap_or_default().to_owned())
        }
    }
}

/// Parses the rules of a robots.txt for this program.
fn parse(text: &str) -> Read {
    let Written { paths, delay } = written_for_us(text);
    Read { rules: Rules::new(paths), delay }
}

/// The rules of the groups for this program, else of the groups for all programs.
fn written_for_us(text: &str) -> Written {
    let (mut ours, mut all) = (None::<Written>, Written::default());
    // The programs of the current group, and whether its list of programs is still being read.
    let (mut for_us, mut for_all, mut naming) = (false, false, false);
    for (key, value) in robots_fields(text) {
        if key == "user-agent" {
            if !naming {
                (for_us, for_all, naming) = (false, false, true);
            }
            let name = value.split(['/', ' ', '\t']).next().unwrap_or_default();
            for_us |= name.eq_ignore_ascii_case(PRODUCT);
            for_all |= name == "*";
            if for_us {
                ours.get_or_insert_default();
            }
            continue;
        }
        let add = |rules: &mut Written| match key.as_str() {
            "allow" | "disallow" if !value.is_empty() && rules.paths.len() < RULES_MAX => {
                rules.paths.push((normal(value), key == "allow"));
            }
            "crawl-delay" => {
                let seconds = value
                    .parse::<f64>()
                    .ok()
                    .filter(|seconds| seconds.is_finite() && *seconds > 0.0);
                let delay = seconds
                    .map(|seconds| Duration::from_secs_f64(seconds.min(DELAY_MAX.as_secs_f64())));
                rules.delay = rules.delay.max(delay);
            }
            _ => {}
        };
        if matches!(key.as_str(), "allow" | "disallow" | "crawl-delay") {
            naming = false;
        }
        if for_us {
            add(ours.get_or_insert_default());
        }
        if for_all {
            add(&mut all);
        }
    }
    ours.unwrap_or(all)
}

/// The end of scheme, host and port of a URI.
fn host_end(uri: &str) -> usize {
    let after = uri.find("://").map_or(0, |at| at + 3);
    uri[after..].find(['/', '?', '#']).map_or(uri.len(), |at| after + at)
}

/// Path and query of a URI, as written.
fn path_of(uri: &str) -> &str {
    let path = &uri[host_end(uri)..];
    let path = path.split('#').next().unwrap_or_default();
    if path.starts_with('/') { path } else { "/" }
}

/// Whether paths may be fetched by a robots.txt, for measuring.
pub fn matcher(text: &str) -> impl Fn(&str) -> bool {
    let rules = parse(text).rules;
    move |path| rules.allow(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_names_us_replaces_the_one_for_all() {
        let text = "\u{feff}# hello\nUser-agent: *\nDisallow: /\nCrawl-delay: 9\n\nUSER-AGENT: other\nuser-agent: Abreast/2.0\n\
                    Disallow: /private/ # here\nAllow: /private/not\nSitemap: /s\nCrawl-Delay: 1.5\nDisallow:\n";
        let rules = parse(text);
        assert_eq!(rules.delay, Some(Duration::from_millis(1_500)));
        for (path, allowed) in
            [("/", true), ("/private/a", false), ("/private/not/a", true), ("/Private/a", true)]
        {
            assert_eq!(rules.rules.allow(path), allowed, "{path}");
        }
        assert!(!parse("User-agent: *\nDisallow: /\n").rules.allow("/a"));
        assert!(
            !parse("User-agent: abreast\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: abreast\nDisallow: /c")
                .rules
                .allow("/c")
        );
        assert!(
            !parse("User-agent: abreast\n\nUser-agent: *\nDisallow: /").rules.allow("/a"),
            "one group of two names"
        );
        assert!(parse("Disallow: /a").rules.allow("/a"), "rules before any name are nobody's");
        assert_eq!(parse("User-agent: *\nCrawl-delay: 1000000000").delay, Some(DELAY_MAX));
        for text in [
            "User-agent: *\nCrawl-delay: soon",
            "User-agent: *\nCrawl-delay: -1",
            "",
            "\0\u{fffd}::",
        ] {
            assert_eq!(parse(text), Read::default(), "{text}");
        }
    }

    #[test]
    fn lines_end_with_cr_lf_or_both() {
        for end in ["\n", "\r", "\r\n"] {
            let text = ["\u{feff}User-agent: *", "Disallow: /a # not this", ""].join(end);
            let rules = parse(&text).rules;
            assert!(!rules.allow("/a/b") && rules.allow("/b"), "{end:?}");
        }
    }

    #[test]
    fn the_longest_pattern_decides_with_wildcards_and_end() {
        let rules = |text: &str| parse(&format!("User-agent: *\n{text}"));
        for (text, path, allowed) in [
            ("Disallow: /*.pdf$", "/d/a.pdf", false),
            ("Disallow: /*.pdf$", "/d/a.pdf?x", true),
            ("Disallow: /*.pdf", "/d/a.pdf?x", false),
            ("Disallow: /a*b*c", "/axxbyyc/z", false),
            ("Disallow: /a*b*c", "/axxcyyb", true),
            ("Disallow: /a$", "/a/b", true),
            ("Disallow: /a*$", "/ab", false),
            ("Disallow: /a\nAllow: /a", "/a", true),
            ("Disallow: /a/b\nAllow: /a", "/a/b/c", false),
            ("Disallow: /%7Ejoe/", "/~joe/x", false),
            ("Disallow: /~joe/", "/%7ejoe/x", false),
            ("Disallow: /a%2fb", "/a%2Fb", false),
            ("Disallow: /a%2fb", "/a/b", true),
            ("Disallow: /é", "/%C3%A9", false),
            ("Disallow: /*?x=", "/a?x=1", false),
        ] {
            assert_eq!(rules(text).rules.allow(path), allowed, "{text} {path}");
        }
        assert_eq!(path_of("http://h/a/b?c#d"), "/a/b?c");
        assert_eq!((path_of("http://h"), path_of("http://h?x")), ("/", "/"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text: String, path: String, pattern in "[/a*$%2f]{0,40}") {
            for rules in [parse(&text), parse(&format!("User-agent: *\nDisallow: {pattern}\nAllow: {text}"))] {
                rules.rules.allow(path_of(&path));
                rules.rules.allow(&path);
            }
        }
    }
}
