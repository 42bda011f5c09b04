//! Properties of the links of a file and of all rules, for fuzzing and for the tests of the seeds.

use super::rules::{Rule, RuleOptions};
use super::{LinkRecord, explain, header_links, is_absolute, published_links, read_links};
use crate::names::keys::{is_published_path, key_of, path_of};
use crate::projection::resourcesync::{LinkDocument, state_links};
use abreast_core::State;
use abreast_webtypes::{Link, parse_link_header};
use globset::{Glob, GlobMatcher};
use std::sync::LazyLock;

const RESOURCES: &str = "https://example.org/set/r/";
/// Longest pattern that is compiled, in bytes. Compilation takes most of the time, and the fuzz
/// target of filters covers longer patterns.
const PATTERN_MAX: usize = 4;
/// Pattern that replaces longer patterns.
static ANY: LazyLock<GlobMatcher> =
    LazyLock::new(|| Glob::new("**").expect("a literal pattern").compile_matcher());

/// Checks four properties: targets are in the set; published links are parsed back to the stored
/// links; headers contain the links; a rule finds the resources that link to a target. The lines of
/// the input are a path, and the pattern, the relation and the template of a rule; the rest is a
/// sidecar.
///
/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let mut lines = bytes.splitn(5, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (path, pattern, rel, href, sidecar) = (line(), line(), line(), line(), line());
    if !is_published_path(path) {
        return;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let link = LinkRecord { rel: text(rel), href: text(href), ..LinkRecord::default() };
    let mut options = RuleOptions { pattern: text(pattern), link, if_exists: true };
    // Most inputs get a valid relation, because the search for a suggestion takes most of the time.
    if !bytes.len().is_multiple_of(16) {
        "describedby".clone_into(&mut options.link.rel);
    }
    let rule = new_rule(&options).or_else(|_| {
        options.if_exists = false;
        new_rule(&options)
    });
    if let Ok(rule) = rule {
        check_rule(&rule, path);
    }
    match serde_json::from_slice::<Vec<LinkRecord>>(sidecar) {
        Ok(records) => {
            if let Ok(links) = read_links(&key_of(path), &records) {
                check_links(&links);
            }
        }
        Err(error) => assert!(!explain(&error).is_empty()),
    }
}

fn new_rule(options: &RuleOptions) -> Result<Rule, String> {
    if options.pattern.len() <= PATTERN_MAX {
        return Rule::new(options);
    }
    Rule::with_matcher(options, ANY.clone())
}

fn check_rule(rule: &Rule, path: &[u8]) {
    rule.matches(path);
    let Ok(link) = rule.link(path, RESOURCES) else { return };
    check_links(std::slice::from_ref(&link));
    // The path of the target must lead to the same key, because files are opened by path.
    let target = path_of(&link.target);
    if rule.if_exists && is_published_path(&target) {
        let (key, target) = (key_of(path), key_of(&target));
        assert!(
            rule.sources_of(&target).iter().any(|(start, end)| match end {
                None => key == *start,
                Some(end) => (start..end).contains(&&key),
            }),
            "{key} leads to {target}, which does not lead back: {:?}",
            rule.sources_of(&target)
        );
    }
}

fn check_links(links: &[Link]) {
    let published = published_links(links, RESOURCES);
    for (link, published) in links.iter().zip(&published) {
        if !is_absolute(&link.target) {
            assert!(!link.target.starts_with('/'), "{}", link.target);
            assert!(
                !link.target.split('/').any(|name| matches!(name, "." | "..")),
                "{}",
                link.target
            );
        }
        assert_eq!(LinkRecord::of(link).to_link("else/where").as_ref(), Ok(link));
        assert!(is_absolute(&published.href));
        let json = serde_json::to_vec(published).unwrap_or_default();
        assert_eq!(serde_json::from_slice::<LinkRecord>(&json).ok().as_ref(), Some(published));
    }
    for value in header_links(RESOURCES, links) {
        assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{value}");
        let read = parse_link_header(&value);
        assert!(
            read.is_ok_and(
                |read| read.len() == 1 && published.iter().any(|link| link.href == read[0].target)
            ),
            "{value}"
        );
    }
    let state = State { links: links.to_vec(), ..State::default() };
    for place in [
        LinkDocument::ResourceList,
        LinkDocument::ChangeList,
        LinkDocument::ResourceDumpManifest,
        LinkDocument::ChangeDumpManifest,
    ] {
        let mut stated = Vec::new();
        state_links(RESOURCES, &state, place, &mut stated);
        assert!(
            stated.len() <= links.len() && stated.iter().all(|stated| is_absolute(&stated.href))
        );
    }
}
