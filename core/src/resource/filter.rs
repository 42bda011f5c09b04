//! Filters of resources: rules in order, the first that matches decides; then sizes and dates.
//!
//! Patterns have the syntax of `.gitignore` files and are matched against the path in the folder,
//! the whole URI, or the media type. A Destination selects with a filter the resources that it
//! copies, a Source the resources that it publishes.

pub(crate) mod fuzz_property;

use abreast_webtypes::W3cDatetime;
use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Most rules in a filter.
const RULES_MAX: usize = 10_000;
/// Longest rule, in bytes.
const RULE_BYTES_MAX: usize = 4 << 10;

/// Which resources are wanted. The default is all.
///
/// A rule is `+ PATTERN` (take) or `- PATTERN` (leave out). A pattern is as in `.gitignore`:
/// without a slash it stands for a name in any folder, with one for a path from the top; a slash at
/// its end is for folders only; `*` and `?` do not cross slashes, `**` does; what matches a folder
/// matches all in it. `uri:PATTERN` is matched against the whole URI, `type:PATTERN` against the
/// media type that is listed.
///
/// Resources that no rule matches are included, unless [`only`](Self::only) is set. Sizes and dates
/// leave out more.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    rules: Vec<Rule>,
    sets: Option<Sets>,
    only: bool,
    min_size: Option<u64>,
    max_size: Option<u64>,
    modified_since: Option<W3cDatetime>,
    modified_before: Option<W3cDatetime>,
    text: String,
}

/// Equal if the rules and limits are written equally.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        // `sets` has the patterns of the rules, and `text` describes all settings.
        let limits = |filter: &Self| {
            let times = (filter.modified_since, filter.modified_before);
            (filter.only, filter.min_size, filter.max_size, times)
        };
        self.rules == other.rules && limits(self) == limits(other)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    take: bool,
    /// The outermost folders of every path that the rule matches: the leading parts of its pattern
    /// without wildcards. Empty for a rule that is not about paths.
    within: Vec<String>,
    /// As written.
    text: String,
}

/// Every pattern of a kind at once, with the number of its rule.
#[derive(Clone, Debug)]
struct Sets {
    path: (GlobSet, Vec<usize>),
    /// Folders, all in which a rule matches.
    folder: (GlobSet, Vec<usize>),
    uri: (GlobSet, Vec<usize>),
    media_type: (GlobSet, Vec<usize>),
}

/// Knowledge of a resource's media type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaType<'a> {
    /// The media type is not known, and neither is the listed value.
    #[default]
    Unknown,
    /// This is listed; or none is.
    Listed(Option<&'a str>),
}

/// The properties of a resource that filters use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// Absolute URI of the resource.
    pub uri: &'a str,
    /// Path in the folder; empty for a resource that cannot have a path.
    pub path: &'a [u8],
    /// Media type, as far as known.
    pub media_type: MediaType<'a>,
    /// Length of the content in bytes, if known.
    pub length: Option<u64>,
    /// Time of the last modification, in microseconds since 1970.
    pub modified: Option<i64>,
    /// Categories of the resource, as far as known.
    pub categories: Categories<'a>,
}

/// Knowledge of a resource's categories, which not every protocol lists.
#[derive(Clone, Copy, Debug, Default)]
pub enum Categories<'a> {
    /// The categories are not known.
    #[default]
    Unknown,
    /// The categories that the Source lists with the resource.
    Listed(&'a [&'a str]),
}

/// The decision of a filter on a resource, and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The resource is taken because of this rule.
    Taken(&'a str),
    /// The resource is left out because of this rule or limit.
    Excluded(&'a str),
    /// The decision depends on the media type, which is not known.
    Unknown,
}

impl Filter {
    /// A filter of rules, each `+ PATTERN` or `- PATTERN`.
    ///
    /// # Errors
    /// A rule that cannot be read, with the expected syntax.
    pub fn new<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut filter = Self::default();
        let mut path = (GlobSetBuilder::new(), Vec::new());
        let mut folder = (GlobSetBuilder::new(), Vec::new());
        let mut uri = (GlobSetBuilder::new(), Vec::new());
        let mut media_type = (GlobSetBuilder::new(), Vec::new());
        for text in rules {
            let text = text.trim_end_matches(['\r', '\n']);
            let refuse = |why: &str| Err(format!("`{}` is not a rule: {why}", text.escape_debug()));
            if text.len() > RULE_BYTES_MAX {
                return refuse("it is longer than 4096 bytes");
            }
            let Some((sign @ ("+" | "-"), pattern)) = text.split_once(' ') else {
                return refuse("it begins with neither `+ ` nor `- `");
            };
            let number = filter.rules.len();
            let is_path = !(pattern.starts_with("uri:") || pattern.starts_with("type:"));
            if number >= RULES_MAX {
                return Err(format!("more than {RULES_MAX} rules"));
            }
            let (globs, (builder, numbers)) = if let Some(pattern) = pattern.strip_prefix("uri:") {
                (vec![pattern.to_owned()], &mut uri)
            } else if let Some(pattern) = pattern.strip_prefix("type:") {
                (vec![pattern.to_ascii_lowercase()], &mut media_type)
            } else {
                (path_globs(pattern), &mut path)
            };
            if globs.is_empty() || globs[0].is_empty() {
                return refuse("there is no pattern");
            }
            for glob in &globs {
                // Every match of such a pattern is in the folder of its fixed prefix.
                let outer = glob.strip_suffix("/**").filter(|_| is_path);
                if let Some(Ok(outer)) = outer.map(build_glob) {
                    folder.0.add(outer);
                    folder.1.push(number);
                }
                match build_glob(glob) {
                    Ok(glob) => builder.add(glob),
                    Err(error) => return refuse(&error.kind().to_string()),
                };
                numbers.push(number);
            }
            let within = if is_path { fixed_names(&globs[0]) } else { Vec::new() };
            filter.rules.push(Rule { take: sign == "+", within, text: text.to_owned() });
            let _ = writeln!(filter.text, "{text}");
        }
        if !filter.rules.is_empty() {
            let build = |(builder, numbers): (GlobSetBuilder, Vec<usize>)| match builder.build() {
                Ok(set) => Ok((set, numbers)),
                Err(error) => Err(format!("the rules together are too much: {}", error.kind())),
            };
            filter.sets = Some(Sets {
                path: build(path)?,
                folder: build(folder)?,
                uri: build(uri)?,
                media_type: build(media_type)?,
            });
        }
        Ok(filter)
    }

    /// Leaves out every resource that no rule takes.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::filter::{Decision, Filter, Subject};
    ///
    /// let filter = Filter::new(["+ /scans/"])?.only();
    /// let scan = Subject { path: b"scans/7.tif", ..Subject::default() };
    /// let notes = Subject { path: b"notes.txt", ..Subject::default() };
    /// assert_eq!(filter.decide(&scan), Decision::Taken("+ /scans/"));
    /// assert_eq!(filter.decide(&notes), Decision::Excluded("no rule takes it"));
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn only(mut self) -> Self {
        self.only = true;
        self.text.push_str("only\n");
        self
    }

    /// Leaves out resources whose listed length is outside these bounds, in bytes.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::filter::{Decision, Filter, Subject};
    ///
    /// let filter = Filter::default().sized(None, Some(50 << 20));
    /// let master = Subject { path: b"scans/7.tif", length: Some(900 << 20), ..Subject::default() };
    /// assert_eq!(filter.decide(&master), Decision::Excluded("--max-size"));
    /// // A list need not state lengths.
    /// let unknown = Subject { length: None, ..master };
    /// assert!(matches!(filter.decide(&unknown), Decision::Taken(_)));
    /// ```
    #[must_use]
    pub fn sized(mut self, min: Option<u64>, max: Option<u64>) -> Self {
        (self.min_size, self.max_size) = (min, max);
        let _ =
            write!(self.text, "{}", min.map(|min| format!("min-size {min}\n")).unwrap_or_default());
        let _ =
            write!(self.text, "{}", max.map(|max| format!("max-size {max}\n")).unwrap_or_default());
        self
    }

    /// Leaves out resources that were modified before `since`, or at or after `before`, according
    /// to the list.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::filter::{Decision, Filter, Subject};
    /// use abreast_webtypes::W3cDatetime;
    ///
    /// let since = W3cDatetime::parse(b"2026-01-01")?;
    /// let filter = Filter::default().modified(Some(since), None);
    /// let old = W3cDatetime::parse(b"2019-05-04")?.instant.as_micros();
    /// let thesis = Subject { path: b"thesis.pdf", modified: Some(old), ..Subject::default() };
    /// assert_eq!(filter.decide(&thesis), Decision::Excluded("--modified-since"));
    /// # Ok::<(), abreast_webtypes::ParseDatetimeError>(())
    /// ```
    #[must_use]
    pub fn modified(mut self, since: Option<W3cDatetime>, before: Option<W3cDatetime>) -> Self {
        (self.modified_since, self.modified_before) = (since, before);
        for (name, date) in [("modified-since", since), ("modified-before", before)] {
            if let Some(date) = date {
                let _ = writeln!(self.text, "{name} {}", date.instant);
            }
        }
        self
    }

    /// The rules in the text of a file: one in each line, without empty lines and lines that start
    /// with `#` or `;`.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::filter::Filter;
    ///
    /// let file = "# Derivatives only\n+ *.jpg\n\n- *\n";
    /// assert_eq!(Filter::lines(file).collect::<Vec<_>>(), ["+ *.jpg", "- *"]);
    /// let filter = Filter::new(Filter::lines(file))?;
    /// assert_eq!(filter.text(), "+ *.jpg\n- *\n");
    /// # Ok::<(), String>(())
    /// ```
    pub fn lines(text: &str) -> impl Iterator<Item = &str> {
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with(['#', ';']))
    }

    /// Whether the filter includes every resource.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The whole filter as text. Filters with equal text decide equally.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a rule of the filter checks paths.
    pub fn needs_paths(&self) -> bool {
        self.sets.as_ref().is_some_and(|sets| !sets.path.0.is_empty())
    }

    /// Whether a rule of the filter checks URIs.
    pub fn needs_uris(&self) -> bool {
        self.sets.as_ref().is_some_and(|sets| !sets.uri.0.is_empty())
    }

    /// Whether the filter excludes everything in the folder at this path, independent of file names
    /// and types; `false` if that is not certain.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::filter::Filter;
    ///
    /// let filter = Filter::new(["+ /private/catalogue.pdf", "- /private/", "- /drafts/"])?;
    /// assert!(filter.leaves_out_folder(b"drafts"));
    /// // The first rule may take a file in this folder.
    /// assert!(!filter.leaves_out_folder(b"private"));
    /// # Ok::<(), String>(())
    /// ```
    pub fn leaves_out_folder(&self, path: &[u8]) -> bool {
        let Some(sets) = &self.sets else { return false };
        let (folders, numbers) = &sets.folder;
        let found = folders.matches_candidate(&Candidate::new(Path::new(OsStr::from_bytes(path))));
        let first = found.into_iter().map(|found| numbers[found]).min();
        // A rule before it may take something in the folder.
        first.is_some_and(|first| {
            !self.rules[..=first].iter().any(|rule| rule.take && rule.may_match_in(path))
        })
    }

    /// The decision on a resource, and the rule that made it.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::filter::{Decision, Filter, MediaType, Subject};
    ///
    /// let filter = Filter::new(["- type:image/*"])?;
    /// let uri = "https://museum.example/objects/7";
    /// let unknown = Subject { uri, ..Subject::default() };
    /// assert_eq!(filter.decide(&unknown), Decision::Unknown);
    /// let listed = Subject { uri, media_type: MediaType::Listed(Some("image/png")), ..unknown };
    /// assert_eq!(filter.decide(&listed), Decision::Excluded("- type:image/*"));
    /// # Ok::<(), String>(())
    /// ```
    pub fn decide(&self, subject: &Subject<'_>) -> Decision<'_> {
        let limits = [
            (
                self.min_size.zip(subject.length).is_some_and(|(min, length)| length < min),
                "--min-size",
            ),
            (
                self.max_size.zip(subject.length).is_some_and(|(max, length)| length > max),
                "--max-size",
            ),
            (
                self.modified_since
                    .zip(subject.modified)
                    .is_some_and(|(since, time)| time < since.instant.as_micros()),
                "--modified-since",
            ),
            (
                self.modified_before
                    .zip(subject.modified)
                    .is_some_and(|(before, time)| time >= before.instant.as_micros()),
                "--modified-before",
            ),
        ];
        if let Some((_, name)) = limits.into_iter().find(|(out, _)| *out) {
            return Decision::Excluded(name);
        }
        let Some(sets) = &self.sets else {
            return if self.only {
                Decision::Excluded("no rule takes it")
            } else {
                Decision::Taken("no rule")
            };
        };
        let first = |(set, numbers): &(GlobSet, Vec<usize>), text: &[u8]| {
            let found = set.matches_candidate(&Candidate::new(Path::new(OsStr::from_bytes(text))));
            found.into_iter().map(|found| numbers[found]).min()
        };
        let by_path = if subject.path.is_empty() { None } else { first(&sets.path, subject.path) };
        let by_uri = first(&sets.uri, subject.uri.as_bytes());
        let decided = by_path.into_iter().chain(by_uri).min();
        let by_type = match subject.media_type {
            // A rule about the type could come first.
            MediaType::Unknown
                if sets
                    .media_type
                    .1
                    .iter()
                    .any(|rule| decided.is_none_or(|decided| *rule < decided)) =>
            {
                return Decision::Unknown;
            }
            MediaType::Listed(Some(listed)) if !sets.media_type.0.is_empty() => {
                let bare = listed.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
                first(&sets.media_type, bare.as_bytes())
            }
            _ => None,
        };
        match decided.into_iter().chain(by_type).min().map(|number| &self.rules[number]) {
            Some(rule) if rule.take => Decision::Taken(&rule.text),
            Some(rule) => Decision::Excluded(&rule.text),
            None if self.only => Decision::Excluded("no rule takes it"),
            None => Decision::Taken("no rule"),
        }
    }
}

fn build_glob(glob: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()
}

impl Rule {
    /// Whether the rule may match something in the folder at this path.
    fn may_match_in(&self, folder: &[u8]) -> bool {
        folder
            .split(|byte| *byte == b'/')
            .zip(&self.within)
            .all(|(name, fixed)| name == fixed.as_bytes())
    }
}

/// The leading parts of a pattern, up to the first part with a wildcard or an escape.
fn fixed_names(glob: &str) -> Vec<String> {
    let is_fixed = |name: &&str| !name.contains(['*', '?', '[', ']', '{', '}', '\\']);
    glob.split('/').take_while(is_fixed).map(str::to_owned).collect()
}

/// The meaning of a pattern of `.gitignore` files: a file or folder with that name, and everything
/// in the folder.
fn path_globs(pattern: &str) -> Vec<String> {
    let (pattern, folders_only) = match pattern.strip_suffix('/') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    if pattern.is_empty() {
        // The top folder.
        return if folders_only { vec!["**".to_owned()] } else { Vec::new() };
    }
    let anchored = match pattern.strip_prefix('/') {
        Some(pattern) => pattern.to_owned(),
        None if pattern.contains('/') => pattern.to_owned(),
        None => format!("**/{pattern}"),
    };
    let inside = if anchored.ends_with("**") { None } else { Some(format!("{anchored}/**")) };
    let itself = (!folders_only || inside.is_none()).then_some(anchored);
    itself.into_iter().chain(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(filter: &Filter, path: &str) -> bool {
        let uri = format!("http://h/{path}");
        let subject = Subject {
            uri: &uri,
            path: path.as_bytes(),
            media_type: MediaType::Listed(None),
            ..Subject::default()
        };
        matches!(filter.decide(&subject), Decision::Taken(_))
    }

    #[test]
    fn patterns_are_those_of_gitignore() {
        for (pattern, out, stays) in [
            ("*.tmp", &["a.tmp", "d/e/a.tmp"][..], &["a.tmpx", "tmp"][..]),
            ("/*.tmp", &["a.tmp"], &["d/a.tmp"]),
            ("build", &["build", "build/a", "d/build/e/a"], &["builds", "d/rebuild"]),
            ("build/", &["build/a", "d/build/a"], &["build", "d/build"]),
            ("d/*.txt", &["d/a.txt"], &["d/e/a.txt", "x/d/a.txt"]),
            ("d/**/z", &["d/z", "d/e/f/z", "d/z/a"], &["z"]),
            ("d/**", &["d/a", "d/e/a"], &["d", "x/d/a"]),
            ("/d", &["d", "d/a"], &["x/d"]),
            ("[ab]?", &["a1", "x/b2"], &["c1", "a"]),
            (r"\*", &["*"], &["a"]),
            ("/type:x", &["type:x"], &["x"]),
            ("/", &["a", "d/a"], &[]),
        ] {
            let filter = Filter::new([format!("- {pattern}").as_str()]).unwrap();
            for path in out {
                assert!(!takes(&filter, path), "{pattern} leaves {path} out");
            }
            for path in stays {
                assert!(takes(&filter, path), "{pattern} says nothing about {path}");
            }
        }
    }

    #[test]
    fn a_folder_is_left_out_only_if_all_in_it_is() {
        for (rules, out, stays) in [
            (&["- drafts/"][..], &["drafts", "a/drafts"][..], &["a", "drafts2"][..]),
            (&["- drafts"], &["drafts", "a/drafts"], &["a"]),
            (&["- /a/b/"], &["a/b"], &["a", "b", "x/a/b"]),
            (&["- *.tmp"], &["x.tmp"], &["x"]),
            (&["- a/**"], &["a"], &["b", "x/a"]),
            (&["- **/old/**"], &["old", "x/old"], &["x"]),
            (&["- [a-c]?/"], &["a1"], &["d1"]),
            (&["+ keep", "- drafts/"], &[], &["drafts"]),
            (&["+ drafts/keep", "- drafts/"], &["a/drafts"], &["drafts"]),
            (&["+ /other/keep", "- drafts/"], &["drafts", "x/drafts"], &["other"]),
            (&["+ a?/x", "- drafts/"], &[], &["drafts"]),
            (&["+ drafts/*/keep", "- drafts/"], &["a/drafts"], &["drafts", "drafts/b"]),
            (&["- drafts/", "+ drafts/keep"], &["drafts"], &[]),
            (&["+ drafts/"], &[], &["drafts"]),
            (&["- type:image/*", "- uri:**"], &[], &["drafts"]),
        ] {
            let filter = Filter::new(rules.iter().copied()).unwrap();
            for path in out {
                assert!(
                    filter.leaves_out_folder(path.as_bytes()),
                    "{rules:?} leave out all in {path}"
                );
                for inner in ["x", "keep", "x/y.z"] {
                    assert!(
                        !takes(&filter, &format!("{path}/{inner}")),
                        "{rules:?} {path}/{inner}"
                    );
                }
            }
            for path in stays {
                assert!(
                    !filter.leaves_out_folder(path.as_bytes()),
                    "{rules:?} take something in {path}"
                );
            }
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = ["+ keep.tmp", "- *.tmp", "+ *"];
        let filter = Filter::new(rules).unwrap();
        assert!(takes(&filter, "d/keep.tmp") && !takes(&filter, "a.tmp") && takes(&filter, "a"));
        let turned = Filter::new(["- *.tmp", "+ keep.tmp"]).unwrap();
        assert!(!takes(&turned, "keep.tmp"));
        let only = Filter::new(["+ *.pdf"]).unwrap().only();
        assert!(takes(&only, "d/a.pdf") && !takes(&only, "a.txt"));
    }

    #[test]
    fn uris_types_sizes_and_dates_are_checked() {
        let uri_rule = Filter::new(["- uri:https://*.museum.example/**"]).unwrap();
        let subject = |uri| Subject { uri, ..Subject::default() };
        assert!(matches!(
            uri_rule.decide(&subject("https://a.museum.example/x/y?z")),
            Decision::Excluded(_)
        ));
        assert!(matches!(
            uri_rule.decide(&subject("http://a.museum.example/x")),
            Decision::Taken(_)
        ));

        let types = Filter::new(["+ type:text/*"]).unwrap().only();
        let typed = |media_type| Subject {
            uri: "http://h/a",
            path: b"a",
            media_type,
            ..Subject::default()
        };
        assert_eq!(
            types.decide(&typed(MediaType::Listed(Some("Text/HTML; charset=utf-8")))),
            Decision::Taken("+ type:text/*")
        );
        assert!(matches!(
            types.decide(&typed(MediaType::Listed(Some("image/png")))),
            Decision::Excluded(_)
        ));
        assert!(
            matches!(types.decide(&typed(MediaType::Listed(None))), Decision::Excluded(_)),
            "no type is listed"
        );
        assert_eq!(types.decide(&typed(MediaType::Unknown)), Decision::Unknown);
        let both = Filter::new(["- a", "+ type:text/*"]).unwrap();
        assert_eq!(
            both.decide(&typed(MediaType::Unknown)),
            Decision::Excluded("- a"),
            "decided before the type could matter"
        );

        let date = |text: &str| Some(W3cDatetime::parse(text.as_bytes()).unwrap());
        let sized = Filter::default()
            .sized(Some(10), Some(20))
            .modified(date("2026-01-01"), date("2026-02-01"));
        let at = |length, text: &str| Subject {
            length,
            modified: date(text).map(|date| date.instant.as_micros()),
            ..Subject::default()
        };
        for (subject, taken) in [
            (at(Some(10), "2026-01-01T00:00:00Z"), true),
            (at(Some(9), "2026-01-05"), false),
            (at(Some(21), "2026-01-05"), false),
            (at(Some(15), "2025-12-31T23:59:59Z"), false),
            (at(Some(15), "2026-02-01T00:00:00Z"), false),
            (at(None, "2026-01-05"), true),
            (Subject::default(), true),
        ] {
            assert_eq!(matches!(sized.decide(&subject), Decision::Taken(_)), taken, "{subject:?}");
        }
    }

    #[test]
    fn equal_filters_have_equal_texts_and_others_do_not() {
        let one = Filter::new(["- a", "+ b"]).unwrap();
        assert_eq!(one.text(), Filter::new(["- a", "+ b"]).unwrap().text());
        let size = |max| Filter::new(["- a", "+ b"]).unwrap().sized(None, max);
        for other in [
            Filter::new(["+ b", "- a"]).unwrap(),
            one.clone().only(),
            size(Some(1)),
            Filter::default(),
        ] {
            assert_ne!(one.text(), other.text());
        }
        assert_eq!(one.text(), size(None).text());
        assert!(Filter::default().is_empty() && Filter::new([]).unwrap().is_empty());
    }

    #[test]
    fn invalid_rules_are_refused() {
        for text in [
            "a",
            "* a",
            "+",
            "- ",
            "+a",
            "- uri:",
            "- [a",
            "- {a",
            &format!("- {}", "a".repeat(5_000)),
        ] {
            assert!(Filter::new([text]).is_err(), "{text}");
        }
        let text = "# comment\n; too\n\n- *.tmp\r\n+ a b \n";
        assert_eq!(Filter::lines(text).collect::<Vec<_>>(), ["- *.tmp", "+ a b "]);
        assert!(!takes(&Filter::new(Filter::lines(text)).unwrap(), "x.tmp"));
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_panics(pattern: String, glob in "[a/*?!{}\\[\\]\\\\-]{0,20}", path: String) {
            for pattern in [pattern, glob] {
                let rules = [format!("- {pattern}"), format!("+ uri:{pattern}"), format!("- type:{pattern}")];
                for rule in rules {
                    if let Ok(filter) = Filter::new([rule.as_str()]) {
                        let media_type = MediaType::Listed(Some(&path));
                        filter.decide(&Subject { uri: &path, path: path.as_bytes(), media_type, ..Subject::default() });
                    }
                }
            }
        }
    }
}
