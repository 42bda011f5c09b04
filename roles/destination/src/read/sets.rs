//! The choice of a set of resources of a Source, and the names of sets.
//!
//! The rule is the same for `sync` and `audit`, for every protocol, and for every address that
//! leads to the Source: the set is chosen by its name or by the URL of its document. A choice is
//! necessary if there are several sets.

use super::SourceSet;
use crate::report::error::{Error, ExitCode};
use std::fmt::Write as _;

/// Maximum number of sets in an error message.
const LISTED_MAX: usize = 50;
/// File names of documents that are the same in every set.
const USUAL_NAMES: [&str; 5] =
    ["capabilitylist", "capability-list", "capability_list", "capabilities", "sdshare"];

/// A set that can be chosen.
pub(crate) trait Candidate {
    /// The URL of the document that describes the set.
    fn url(&self) -> &str;

    /// Whether the set has no name.
    fn is_nameless(&self) -> bool {
        false
    }
}

impl Candidate for SourceSet {
    fn url(&self) -> &str {
        &self.url
    }
}

/// The name of a set: the folder of its Capability List, or the list's own name where that is more
/// specific.
pub fn name_of(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let path = path
        .split_once("://")
        .map_or(path, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let last = parts.next().unwrap_or("set");
    let stem = last.split_once('.').map_or(last, |(stem, _)| stem);
    let is_usual = USUAL_NAMES.iter().any(|usual| stem.eq_ignore_ascii_case(usual));
    match parts.next() {
        // Documents of ResourceSync 0.1, as this program publishes them.
        Some("v0.1") => parts.next().unwrap_or(stem),
        Some(folder) if is_usual => folder,
        _ if stem.is_empty() => last,
        _ => stem,
    }
}

/// Whether the user's word means this set: its URL, its name, or the part of the path that is its
/// folder or file.
pub(crate) fn fits(url: &str, wanted: &str) -> bool {
    let path = url
        .split_once("://")
        .map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    url == wanted
        || name_of(url) == wanted
        || path.split(['/', '?', '#']).any(|part| !part.is_empty() && part == wanted)
}

/// The chosen set, or the only set.
///
/// # Errors
/// No set or several sets have the name; or there are several sets, and none is chosen.
pub(crate) fn choose<'s, S: Candidate>(
    sets: &'s [S],
    wanted: Option<&str>,
    source: &str,
) -> Result<&'s S, Error> {
    let Some(wanted) = wanted else {
        return match sets {
            [one] => Ok(one),
            _ => Err(Error::new(
                "discover.set",
                ExitCode::Usage,
                format!("{source} has {} sets of resources{}", sets.len(), listed(sets)),
            )
            .with_help(
                "choose one with `--set NAME` or `--set URL`, or copy each into its own folder with `--all-sets`",
            )
            .with_candidates(names(sets))),
        };
    };
    // The URL and the name come before what merely occurs in a URL.
    let by =
        |fits: &dyn Fn(&str) -> bool| sets.iter().filter(|set| fits(set.url())).collect::<Vec<_>>();
    let rules: [&dyn Fn(&str) -> bool; 3] =
        [&|url| url == wanted, &|url| name_of(url) == wanted, &|url| fits(url, wanted)];
    let found =
        rules.iter().map(|rule| by(rule)).find(|found| !found.is_empty()).unwrap_or_default();
    if let [one] = found.as_slice() {
        return Ok(one);
    }
    if let [only] = sets
        && only.is_nameless()
    {
        let message = format!(
            "{} is a list without a Capability List, so it is of no set named `{wanted}`",
            only.url()
        );
        return Err(Error::new("discover.set", ExitCode::Usage, message)
            .with_help("leave `--set` away, or give the URL of the Source Description"));
    }
    let how_many = if found.is_empty() { "no set" } else { "several sets" };
    let help = if found.is_empty() {
        "choose one of these"
    } else {
        "give the whole URL of one of these to `--set`"
    };
    let message = format!("{source} has {how_many} named `{wanted}`; it has{}", listed(sets));
    Err(Error::new("discover.set", ExitCode::Usage, message)
        .with_help(help)
        .with_candidates(names(sets)))
}

/// The URLs of sets, as `--set` takes them.
fn names<S: Candidate>(sets: &[S]) -> impl Iterator<Item = String> {
    sets.iter().take(LISTED_MAX).map(|set| set.url().to_owned())
}

/// The error if the address belongs to a set and another set was chosen.
pub(crate) fn of_another<S: Candidate>(given: &str, own: &str, wanted: &str, sets: &[S]) -> Error {
    let message = format!(
        "{given} belongs to the set {} ({own}), not to `{wanted}`; the Source has{}",
        name_of(own),
        listed(sets)
    );
    Error::new("discover.set", ExitCode::Usage, message).with_help(
        "give the address of the Source, or of the Capability List of the set that you want",
    )
}

fn listed<S: Candidate>(sets: &[S]) -> String {
    let mut text = String::new();
    for set in sets.iter().take(LISTED_MAX) {
        let _ = write!(text, "\n  {}  {}", name_of(set.url()), set.url());
    }
    if sets.len() > LISTED_MAX {
        let _ = write!(text, "\n  and {} more", sets.len() - LISTED_MAX);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(urls: &[&str]) -> Vec<SourceSet> {
        urls.iter()
            .map(|url| SourceSet { name: name_of(url).to_owned(), url: (*url).to_owned() })
            .collect()
    }

    #[test]
    fn a_set_is_named_by_its_folder_or_its_list() {
        for (url, name) in [
            ("https://h/papers/capabilitylist.xml", "papers"),
            ("https://h/a/papers/CapabilityList.xml?x=1", "papers"),
            ("https://h/capabilitylist.xml", "capabilitylist"),
            ("https://h/papers/sdshare", "papers"),
            ("https://h/dataset1/capabilitylist2.xml", "capabilitylist2"),
            ("https://h/maps.xml", "maps"),
            ("https://h/papers/v0.1/sitemap.xml", "papers"),
            ("https://h/maps/", "maps"),
            ("https://h/", "set"),
            ("https://h", "set"),
        ] {
            assert_eq!(name_of(url), name, "{url}");
        }
    }

    #[test]
    fn a_set_is_chosen_by_name_or_url_and_never_silently() {
        let all = [
            "https://h/maps/capabilitylist.xml",
            "https://h/old/capabilitylist.xml",
            "https://h/maps/old.xml",
        ];
        let chosen = |wanted: Option<&str>| {
            choose(&sets(&all), wanted, "https://h/")
                .map(|set| set.url.clone())
                .map_err(|error| error.to_string())
        };
        assert_eq!(chosen(Some("maps")).unwrap(), all[0]);
        assert_eq!(chosen(Some(all[2])).unwrap(), all[2]);
        // Two sets have each of these names.
        for wanted in
            [None, Some("old"), Some("h"), Some("nothing"), Some(""), Some("capabilitylist.xml")]
        {
            let error = chosen(wanted).unwrap_err();
            assert!(
                all.iter().all(|url| error.contains(url)) && error.contains("help:"),
                "{wanted:?}: {error}"
            );
        }
        assert_eq!(choose(&sets(&all[..1]), None, "").unwrap().url, all[0]);
        assert!(choose(&sets(&all[..1]), Some("map"), "").is_err());
    }

    #[test]
    fn a_long_list_of_sets_is_cut() {
        let many: Vec<String> =
            (0..60).map(|number| format!("https://h/s{number}/capabilitylist.xml")).collect();
        let urls: Vec<&str> = many.iter().map(String::as_str).collect();
        let error = choose(&sets(&urls), None, "https://h/").unwrap_err().to_string();
        assert!(error.contains("has 60 sets") && error.contains("and 10 more"), "{error}");
    }
}
