//! Rules of the configuration that derive links from the name of a resource.

use super::{LinkRecord, check_relation};
use crate::names::keys::{key_of, path_of};
use abreast_webtypes::Link;
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A rule of the configuration, before validation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleOptions {
    /// Pattern for the resources: `*.pdf` (file name, in any folder) or `records/**/*.xml` (whole
    /// path).
    pub pattern: String,
    /// The link to add. `href` may contain placeholders: `{path}`, `{dir}`, `{name}`, `{stem}`,
    /// `{ext}`, `{uri}`.
    pub link: LinkRecord,
    /// Add the link only if the target is a published file of the set.
    pub if_exists: bool,
}

/// A validated rule with compiled pattern and parsed template.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    matcher: GlobMatcher,
    /// Whether the pattern contains a `/` and therefore applies to the whole path.
    whole_path: bool,
    link: LinkRecord,
    template: Vec<Part>,
    pub(crate) if_exists: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Path,
    Dir,
    Name,
    Stem,
    Ext,
    Uri,
}

const PLACEHOLDERS: [(&str, Part); 6] = [
    ("path", Part::Path),
    ("dir", Part::Dir),
    ("name", Part::Name),
    ("stem", Part::Stem),
    ("ext", Part::Ext),
    ("uri", Part::Uri),
];

impl Rule {
    /// Validates a rule and compiles its pattern.
    ///
    /// # Errors
    /// The invalid key of the configuration, and why it is invalid.
    pub(crate) fn new(options: &RuleOptions) -> Result<Self, String> {
        if options.pattern.is_empty() {
            return Err("`match`: a rule needs a pattern, such as `*.pdf`".to_owned());
        }
        let glob = GlobBuilder::new(options.pattern.trim_start_matches('/'))
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| {
                format!("`match`: `{}` is no pattern: {}", options.pattern, error.kind())
            })?;
        Self::with_matcher(options, glob.compile_matcher())
    }

    /// Validates the other parts of a rule whose pattern is already compiled.
    pub(super) fn with_matcher(
        options: &RuleOptions,
        matcher: GlobMatcher,
    ) -> Result<Self, String> {
        check_relation(&options.link.rel)?;
        let template = parse(&options.link.href).map_err(|reason| format!("`href`: {reason}"))?;
        let rule = Self {
            matcher,
            whole_path: options.pattern.contains('/'),
            link: options.link.clone(),
            template,
            if_exists: options.if_exists,
        };
        // A sample path detects a rule that fails for every resource.
        rule.link(b"folder/sample.x", "https://example.org/")
            .map_err(|reason| format!("link: {reason}"))?;
        if options.if_exists && rule.sibling().is_none() {
            return Err(format!(
                "`if_exists`: `{}` must be a name in the resource's folder or in one beneath it, made of `{{stem}}` or \
                 `{{name}}` once, such as `{{stem}}.xml` or `meta/{{name}}.json`",
                options.link.href
            ));
        }
        Ok(rule)
    }

    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let subject = if self.whole_path { path } else { split(path).1 };
        self.matcher.is_match(Path::new(OsStr::from_bytes(subject)))
    }

    /// Returns the link of the resource at this path; `resources` is the prefix of the set's URIs.
    pub(crate) fn link(&self, path: &[u8], resources: &str) -> Result<Link, String> {
        let (dir, name) = split(path);
        let (stem, ext) = stem_and_ext(name);
        let mut href = String::new();
        for part in &self.template {
            match part {
                Part::Literal(text) => href.push_str(text),
                Part::Path => href.push_str(&key_of(path)),
                Part::Dir if dir.is_empty() => {}
                Part::Dir => {
                    href.push_str(&key_of(dir));
                    href.push('/');
                }
                Part::Name => href.push_str(&key_of(name)),
                Part::Stem => href.push_str(&key_of(stem)),
                Part::Ext => href.push_str(&key_of(ext)),
                Part::Uri => {
                    href.push_str(resources);
                    href.push_str(&key_of(path));
                }
            }
        }
        LinkRecord { href, ..self.link.clone() }.to_link(&key_of(path))
    }

    /// Returns the parts of the only form of template whose resources can be derived from the
    /// target: a fixed folder, and a name with one placeholder.
    fn sibling(&self) -> Option<(&str, Part, String)> {
        let (before, placeholder, after) = match self.template.as_slice() {
            [part @ (Part::Stem | Part::Name)] => ("", part, ""),
            [Part::Literal(before), part @ (Part::Stem | Part::Name)] => {
                (before.as_str(), part, "")
            }
            [part @ (Part::Stem | Part::Name), Part::Literal(after)] => ("", part, after.as_str()),
            [Part::Literal(before), part @ (Part::Stem | Part::Name), Part::Literal(after)] => {
                (before.as_str(), part, after.as_str())
            }
            _ => return None,
        };
        // A colon would turn the name into a scheme, and text after `?` or `#` is not part of a
        // file name.
        let plain = ![before, after].iter().any(|text| text.contains([':', '?', '#']))
            && !before.starts_with('/')
            && !before.split('/').any(|segment| matches!(segment, "." | ".."))
            && !after.contains('/')
            && !ends_within_escape(before);
        plain.then(|| (before, placeholder.clone(), after.to_owned()))
    }

    /// Returns the possible keys of resources that link to this target by this rule. An entry is a
    /// key, or a range of keys `[start, end)`.
    pub(crate) fn sources_of(&self, target: &str) -> Vec<(String, Option<String>)> {
        let sibling = self.sibling().filter(|_| self.if_exists);
        let found = sibling.and_then(|(before, placeholder, after)| {
            // Keys have only one encoding, so the literals of the template are encoded in the same
            // way.
            let (before, after) = (key_of(&path_of(before)), key_of(&path_of(&after)));
            Some((source_of(target, &before, &after)?, placeholder))
        });
        match found {
            None => Vec::new(),
            Some((key, Part::Name)) => vec![(key, None)],
            // Names with an extension are in the range from `.` to `/`, the next byte. A name
            // without a dot is a stem.
            Some((key, _)) => vec![(format!("{key}."), Some(format!("{key}/"))), (key, None)],
        }
    }
}

/// Whether the text ends in an incomplete percent escape, which the value of a placeholder would
/// complete.
fn ends_within_escape(text: &str) -> bool {
    text.bytes().rev().take(2).any(|byte| byte == b'%')
}

/// Returns the key of the resource, without the extension if the placeholder is `{stem}`.
fn source_of(target: &str, before: &str, after: &str) -> Option<String> {
    let (folder, name) =
        before.rsplit_once('/').map_or(("", before), |(folder, name)| (folder, name));
    let (target_folder, target_name) = target.rsplit_once('/').unwrap_or(("", target));
    let value = target_name.strip_prefix(name)?.strip_suffix(after)?;
    let dir = match folder {
        "" => target_folder,
        _ if target_folder == folder => "",
        _ => target_folder.strip_suffix(folder)?.strip_suffix('/')?,
    };
    if value.is_empty() {
        return None;
    }
    let slash = if dir.is_empty() { "" } else { "/" };
    Some(format!("{dir}{slash}{value}"))
}

/// Parses a template into literals and placeholders.
fn parse(href: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = href;
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!("`{href}` has a `{{` without `}}`"));
        };
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        let Some((_, part)) = PLACEHOLDERS.iter().find(|(known, _)| *known == name) else {
            let nearest =
                crate::links::nearest::nearest(name, &PLACEHOLDERS.map(|(known, _)| known));
            return Err(format!(
                "there is no placeholder `{{{name}}}`; did you mean `{{{nearest}}}`?"
            ));
        };
        parts.push(part.clone());
        rest = after;
    }
    if rest.contains('}') {
        return Err(format!("`{href}` has a `}}` without `{{`"));
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    Ok(parts)
}

/// Splits a path into folder and name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// Splits a name at the last dot. A name without a dot is a stem without an extension.
fn stem_and_ext(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|byte| *byte == b'.') {
        Some(dot) if dot > 0 => (&name[..dot], &name[dot + 1..]),
        _ => (name, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pattern: &str, href: &str, if_exists: bool) -> RuleOptions {
        let link =
            LinkRecord { rel: "describedby".into(), href: href.into(), ..LinkRecord::default() };
        RuleOptions { pattern: pattern.into(), link, if_exists }
    }

    fn target(pattern: &str, href: &str, path: &str) -> String {
        let rule = Rule::new(&options(pattern, href, false)).unwrap();
        assert!(rule.matches(path.as_bytes()), "{pattern} {path}");
        rule.link(path.as_bytes(), "https://example.org/set/r/").unwrap().target
    }

    #[test]
    fn placeholders_stand_for_parts_of_the_path() {
        for (href, made) in [
            ("{stem}.xml", "a%20b/c.xml"),
            ("meta/{name}.json", "a%20b/meta/c.tar.gz.json"),
            ("/x/{dir}{stem}.{ext}", "x/a%20b/c.tar.gz"),
            ("https://m.example.org/{path}", "https://m.example.org/a%20b/c.tar.gz"),
            (
                "https://t.example.org/{uri}",
                "https://t.example.org/https://example.org/set/r/a%20b/c.tar.gz",
            ),
        ] {
            let made = made.replace("c.xml", "c.tar.xml");
            assert_eq!(target("*.gz", href, "a b/c.tar.gz"), made, "{href}");
        }
    }

    #[test]
    fn patterns_without_a_slash_match_in_any_folder() {
        let matches = |pattern: &str, path: &str| {
            Rule::new(&options(pattern, "{stem}.xml", false)).unwrap().matches(path.as_bytes())
        };
        assert!(
            matches("*.pdf", "a.pdf")
                && matches("*.pdf", "x/y/a.pdf")
                && !matches("*.pdf", "a.pdf.txt")
        );
        assert!(
            matches("x/*.pdf", "x/a.pdf")
                && !matches("x/*.pdf", "x/y/a.pdf")
                && matches("x/**/*.pdf", "x/y/a.pdf")
        );
        assert!(
            matches("**", "anything")
                && matches("/a.pdf", "a.pdf")
                && !matches("/a.pdf", "x/a.pdf")
        );
    }

    #[test]
    fn bad_rules_say_what_is_wrong() {
        for (rule, part) in [
            (options("", "x", false), "`match`"),
            (options("[", "x", false), "`match`: `[` is no pattern"),
            (options("*", "{stm}.xml", false), "did you mean `{stem}`?"),
            (options("*", "{stem", false), "`{` without `}`"),
            (options("*", "stem}", false), "`}` without `{`"),
            (options("*", "a b", false), "`href`"),
            (options("*", "../../../{stem}", false), "leads out of the set"),
            (options("*", "https://x.example/{stem}", true), "`if_exists`"),
            (options("*", "../{stem}.xml", true), "`if_exists`"),
            (options("*", "{dir}{stem}.xml", true), "`if_exists`"),
            (options("*", "m%6{stem}.xml", true), "`if_exists`"),
            (options("*", "{stem}.x:y", true), "`if_exists`"),
            (options("*", "{name}.xml?part=1", true), "`if_exists`"),
        ] {
            let error = Rule::new(&rule).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_resources_whose_target_this_is_are_found() {
        let sources = |href: &str, target: &str| {
            Rule::new(&options("*", href, true)).unwrap().sources_of(target)
        };
        let by_stem = [("a/b.".to_owned(), Some("a/b/".to_owned())), ("a/b".to_owned(), None)];
        assert_eq!(sources("{stem}.xml", "a/b.xml"), by_stem);
        assert_eq!(sources("meta/{name}.json", "a/meta/b.pdf.json"), [("a/b.pdf".into(), None)]);
        assert_eq!(sources("meta/{name}.json", "meta/b.pdf.json"), [("b.pdf".into(), None)]);
        assert_eq!(sources("meta/{name}.json", "a/metameta/b.pdf.json"), []);
        assert_eq!(sources("m%65ta/{name}[1]", "a/meta/b.pdf%5B1%5D"), [("a/b.pdf".into(), None)]);
        assert_eq!(sources("{stem}.xml", "a/b.pdf"), []);
        assert_eq!(sources("{stem}.xml", "a/.xml"), []);
    }
}
