//! Links of a file: the links in its sidecar, followed by the links of rules.
//!
//! The sidecar of `NAME` is the file `.NAME.links.json` in the same folder: a JSON array of links.
//! The name starts with a dot, so the sidecar is not published. Rules only add links that the
//! sidecar does not contain. If the sidecar contains a `via` link, rules do not add another one,
//! because it identifies the original Source.

use super::record::{MAX_LINK_BYTES, bytes_of};
use super::rules::{Rule, RuleOptions, split};
use super::{LinkRecord, MAX_LINKS, header_links, read_links};
use crate::names::fingerprint::fingerprint_of;
use crate::names::keys::{is_published_path, key_of, path_of};
use crate::names::path_state::{PathState, inspect};
use abreast_core::{ChangeLog, KeyRange, LogError, SetId};
use abreast_folder::{ErrorKind, Folder, Stat};
use abreast_webtypes::Link;
use md5::{Digest as _, Md5};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most bytes in a sidecar.
const MAX_SIDECAR: u64 = 256 * 1_024;
/// Most bytes in the Link headers of a response.
const MAX_HEADERS: usize = 16 * 1_024;
/// Most resources that can link to the same target by the same rule.
const MAX_SOURCES: usize = 1_000;

/// Rules and sidecars from which the links of a set's files are derived.
#[derive(Debug, Default)]
pub struct Links {
    rules: Vec<Rule>,
    resources: String,
    /// Whether a sidecar was found. Until then no sidecar is opened, to save a system call per
    /// file.
    sidecars: AtomicBool,
}

/// Links of a file, and the problem with its sidecar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLinks {
    /// Valid links, which are published with the file.
    pub links: Vec<Link>,
    /// Why the sidecar is invalid, if so; the links in an invalid sidecar are ignored.
    pub problem: Option<String>,
}

impl Links {
    /// Validates the rules of a set; `resources` is the prefix of the set's URIs.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::links::{LinkRecord, Links, RuleOptions};
    ///
    /// let rule = RuleOptions {
    ///     pattern: "*.tif".to_owned(),
    ///     link: LinkRecord {
    ///         rel: "describedby".to_owned(),
    ///         href: "{stem}.xml".to_owned(),
    ///         ..LinkRecord::default()
    ///     },
    ///     if_exists: true,
    /// };
    /// let mut wrong = rule.clone();
    /// wrong.link.href = "{stam}.xml".to_owned();
    /// let resources = "https://repo.example/maps/r/";
    /// assert!(Links::new(&[rule.clone()], resources).is_ok());
    /// let faults = Links::new(&[rule, wrong], resources).unwrap_err();
    /// assert_eq!(faults[0].0, 2);
    /// assert!(faults[0].1.ends_with("did you mean `{stem}`?"));
    /// ```
    ///
    /// # Errors
    /// Number of each invalid rule, counted from 1, and why the rule is invalid.
    pub fn new(rules: &[RuleOptions], resources: &str) -> Result<Self, Vec<(usize, String)>> {
        let (mut checked, mut problems) = (Vec::new(), Vec::new());
        for (number, rule) in rules.iter().enumerate() {
            match Rule::new(rule) {
                Ok(rule) => checked.push(rule),
                Err(problem) => problems.push((number + 1, problem)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            rules: checked,
            resources: resources.to_owned(),
            sidecars: AtomicBool::new(false),
        })
    }

    /// Whether the set has rules or sidecars, so that files can have links.
    pub fn active(&self) -> bool {
        !self.rules.is_empty() || self.sidecars.load(Ordering::Relaxed)
    }

    /// Handles a name in the folder. After the first sidecar, sidecars are opened.
    pub(crate) fn saw(&self, name: &[u8]) {
        if owner(name).is_some() {
            self.sidecars.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the links of the file at this relative path.
    pub fn of(&self, folder: &Folder, path: &[u8]) -> FileLinks {
        let mut found = FileLinks::default();
        if self.sidecars.load(Ordering::Relaxed) {
            match sidecar_of(folder, path) {
                Ok(links) => found.links = links,
                Err(problem) => found.problem = Some(problem),
            }
        }
        let mut bytes: usize = found.links.iter().map(bytes_of).sum();
        for rule in self.rules.iter().filter(|rule| rule.matches(path)) {
            // Some names lead to an invalid reference; the link is then omitted.
            let Ok(link) = rule.link(path, &self.resources) else { continue };
            let named = link.has_rel("via") && found.links.iter().any(|other| other.has_rel("via"));
            let known = found
                .links
                .iter()
                .any(|other| other.target == link.target && other.rel == link.rel);
            let full = found.links.len() >= MAX_LINKS || bytes + bytes_of(&link) > MAX_LINK_BYTES;
            if named || known || full {
                continue;
            }
            if rule.if_exists && !is_there(folder, &link.target) {
                continue;
            }
            bytes += bytes_of(&link);
            found.links.push(link);
        }
        found
    }

    /// Returns the values of Link headers for the file at this relative path, at most 16 KiB in
    /// total, because clients reject longer headers.
    pub fn headers(&self, folder: &Folder, path: &[u8]) -> Vec<String> {
        self.headers_of(&self.of(folder, path).links)
    }

    /// As [`Self::headers`], for links that the log has.
    pub fn headers_of(&self, links: &[Link]) -> Vec<String> {
        let mut left = MAX_HEADERS;
        let mut values = header_links(&self.resources, links);
        values.retain(|value| {
            left = left.saturating_sub(value.len());
            left > 0
        });
        values
    }

    /// Whether a link can appear or disappear because its target is created or deleted.
    pub(crate) fn depend_on_files(&self) -> bool {
        self.rules.iter().any(|rule| rule.if_exists)
    }

    /// Returns the keys of resources that link to `target` only if the target exists.
    pub(crate) fn sources_of(
        &self,
        log: &dyn ChangeLog,
        set: SetId,
        target: &str,
    ) -> Result<Vec<String>, LogError> {
        let mut keys = Vec::new();
        let rules = self.rules.iter().filter(|rule| rule.if_exists);
        for (start, end) in rules.flat_map(|rule| rule.sources_of(target)) {
            let range = KeyRange { end: Some(end.unwrap_or_else(|| format!("{start}\0"))), start };
            log.scan(set, &range, &mut |resource| {
                keys.push(resource.key.clone());
                if keys.len() < MAX_SOURCES {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        }
        Ok(keys)
    }
}

fn is_there(folder: &Folder, target: &str) -> bool {
    let path = path_of(target);
    is_published_path(&path) && matches!(inspect(folder, &path), PathState::File(_))
}

/// Computes a fingerprint of links; `None` without links, so that the log does not store a value.
fn print_of(links: &[Link]) -> Option<[u8; 8]> {
    if links.is_empty() {
        return None;
    }
    let mut hash = Md5::new();
    let mut text = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for link in links {
        text(&link.target);
        text(&link.rel);
        for (name, value) in &link.params {
            text(name);
            text(value);
        }
    }
    hash.finalize()[..8].try_into().ok()
}

/// Computes the fingerprint of a file, followed by the fingerprint of its links.
pub(crate) fn fingerprint_with(stat: &Stat, links: &[Link]) -> Vec<u8> {
    let mut witness = fingerprint_of(stat).to_vec();
    witness.extend(print_of(links).into_iter().flatten());
    witness
}

/// Compares a stored fingerprint with a file and its links. Returns whether the file is equal, and
/// whether the links are equal.
pub(crate) fn same_as_seen(seen: &[u8], stat: &Stat, links: &[Link]) -> (bool, bool) {
    let now = fingerprint_of(stat);
    let (file, print) = seen.split_at(seen.len().min(now.len()));
    (file == now, print == print_of(links).as_ref().map_or(&[][..], <[u8; 8]>::as_slice))
}

/// Returns the name of the sidecar of a file.
pub(crate) fn sidecar_name(name: &[u8]) -> Vec<u8> {
    [b".".as_slice(), name, b".links.json"].concat()
}

/// Returns the name of the file to which a sidecar belongs; `None` if the name is not a sidecar's.
fn owner(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(b".")?.strip_suffix(b".links.json").filter(|owner| !owner.is_empty())
}

/// Returns the path of the file to which a sidecar belongs; `None` if the path is not a sidecar's.
pub(crate) fn owner_of(path: &[u8]) -> Option<Vec<u8>> {
    let (dir, name) = split(path);
    let owner = owner(name)?;
    Some(if dir.is_empty() { owner.to_vec() } else { [dir, b"/", owner].concat() })
}

fn sidecar_of(folder: &Folder, path: &[u8]) -> Result<Vec<Link>, String> {
    let (dir, name) = split(path);
    let name = sidecar_name(name);
    let place = if dir.is_empty() { name } else { [dir, b"/", &name].concat() };
    let shown = String::from_utf8_lossy(&place).escape_debug().to_string();
    let (file, stat) = match folder.open_file(&place) {
        Ok(opened) => opened,
        // The name of the sidecar of a file with a name of 255 bytes would be too long, so such a
        // file does not have a sidecar.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::Name | ErrorKind::TooLong
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(format!("cannot read the links in `{shown}`: {error}")),
    };
    if stat.size > MAX_SIDECAR {
        return Err(format!(
            "cannot use the links in `{shown}`: it is larger than {MAX_SIDECAR} bytes"
        ));
    }
    let mut text = Vec::with_capacity(stat.size as usize);
    let read = file.take(MAX_SIDECAR).read_to_end(&mut text);
    read.map_err(|error| format!("cannot read the links in `{shown}`: {error}"))?;
    let records: Vec<LinkRecord> = serde_json::from_slice(&text)
        .map_err(|error| format!("cannot use the links in `{shown}`: {}", explain(&error)))?;
    read_links(&key_of(path), &records)
        .map_err(|error| format!("cannot use the links in `{shown}`: {error}"))
}

/// Describes an error in JSON text. For an unknown field, suggests the most similar known field.
pub fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let Some(rest) = text.strip_prefix("unknown field `") else { return text };
    // The unknown name may contain backquotes, but the known names do not.
    let Some((unknown, expected)) = rest.rsplit_once("`, expected ") else { return text };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let place =
        text.rsplit_once(" at line ").map_or(String::new(), |(_, place)| format!("line {place}: "));
    let nearest = crate::links::nearest::nearest(unknown, &known);
    format!("{place}unknown field `{}`; did you mean `{nearest}`?", unknown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(files: &[(&str, &str)]) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = place.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let folder = Folder::open(place.path()).unwrap();
        (place, folder)
    }

    fn links(rules: &[(&str, &str, &str, bool)]) -> Links {
        let rules: Vec<_> = rules
            .iter()
            .map(|(pattern, rel, href, if_exists)| RuleOptions {
                pattern: (*pattern).into(),
                link: LinkRecord {
                    rel: (*rel).into(),
                    href: (*href).into(),
                    ..LinkRecord::default()
                },
                if_exists: *if_exists,
            })
            .collect();
        Links::new(&rules, "https://example.org/set/r/").unwrap()
    }

    fn targets(links: &Links, folder: &Folder, path: &str) -> Vec<String> {
        let found = links.of(folder, path.as_bytes());
        assert_eq!(found.problem, None);
        found.links.into_iter().map(|link| format!("{} {}", link.rel, link.target)).collect()
    }

    #[test]
    fn a_target_that_must_exist_is_linked_when_it_is_there() {
        let (place, folder) = world(&[("d/a.pdf", ""), ("d/b.pdf", ""), ("d/a.xml", "")]);
        let links = links(&[("*.pdf", "describedby", "{stem}.xml", true)]);
        assert_eq!(targets(&links, &folder, "d/a.pdf"), ["describedby d/a.xml"]);
        assert!(targets(&links, &folder, "d/b.pdf").is_empty());
        std::os::unix::fs::symlink("a.xml", place.path().join("d/b.xml")).unwrap();
        assert!(targets(&links, &folder, "d/b.pdf").is_empty(), "a link is not published");
    }

    #[test]
    fn the_original_source_that_a_sidecar_names_is_kept() {
        let (_place, folder) = world(&[
            ("a", ""),
            ("b", ""),
            (
                ".a.links.json",
                r#"[{"rel":"via","href":"https://original.example.org/a"},{"rel":"up","href":"b"}]"#,
            ),
        ]);
        let links = links(&[("**", "via", "https://upstream.example.org/{path}", false)]);
        links.saw(b".a.links.json");
        assert_eq!(targets(&links, &folder, "a"), ["via https://original.example.org/a", "up b"]);
        assert_eq!(targets(&links, &folder, "b"), ["via https://upstream.example.org/b"]);
    }

    #[test]
    fn a_bad_sidecar_is_reported_with_place_and_nearest_name() {
        let (_place, folder) =
            world(&[("d/a", ""), ("d/.a.links.json", "[{\"rel\":\"up\",\n\"hrf\":\"b\"}]")]);
        let links = links(&[("a", "license", "https://example.org/l", false)]);
        links.saw(b".a.links.json");
        let found = links.of(&folder, b"d/a");
        let problem = found.problem.unwrap();
        assert!(problem.contains("`d/.a.links.json`: line 2"), "{problem}");
        assert!(problem.contains("unknown field `hrf`; did you mean `href`?"), "{problem}");
        assert_eq!(found.links.len(), 1);
    }

    #[test]
    fn only_sidecars_have_owners() {
        assert_eq!(owner_of(b"x/.a.pdf.links.json"), Some(b"x/a.pdf".to_vec()));
        for path in ["x/a.links.json", ".links.json", "x/..links.json", "x/.a.links.jsonx"] {
            assert_eq!(owner_of(path.as_bytes()), None, "{path}");
        }
    }

    #[test]
    fn equal_links_have_equal_prints() {
        let link = |target: &str, rel: &str| Link {
            target: target.into(),
            rel: rel.into(),
            params: Vec::new(),
        };
        assert_eq!(print_of(&[]), None);
        assert_eq!(print_of(&[link("a", "b")]), print_of(&[link("a", "b")]));
        assert_ne!(print_of(&[link("a", "b")]), print_of(&[link("ab", "")]));
    }
}
