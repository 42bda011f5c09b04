//! Pages of the documentation: each is in the table of contents, and each relative link leads somewhere.
//!
//! Pages are the files of Markdown below `docs` and in the root of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::root;
use crate::tree;

/// The table of contents, in the form of mdBook.
pub(crate) const CONTENTS: &str = "docs/SUMMARY.md";

/// Pages that `cargo xtask book` lists after the table of contents.
pub(crate) const DECISIONS: &str = "docs/decisions";

/// A link to a place in the repository.
#[derive(Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) line: usize,
    /// Where the text has the link: its label in brackets and its target in parentheses.
    pub(crate) range: Range<usize>,
    pub(crate) label: String,
    /// The path as written; empty for the same page.
    pub(crate) path: String,
    pub(crate) anchor: Option<String>,
}

/// The text with blanks in place of code, which contains no links.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut is_fenced, mut is_code) = (false, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        let is_blank = line.trim().is_empty();
        for byte in line.bytes() {
            is_code ^= byte == b'`' && !is_fenced && !is_fence;
            let is_shown = byte == b'\n' || !(is_fenced || is_fence || is_code || byte == b'`');
            // Same length in bytes, so that ranges are those of the text.
            out.push(if is_shown && byte.is_ascii() { char::from(byte) } else { ' ' });
        }
        is_fenced ^= is_fence;
        is_code &= !is_blank;
    }
    out
}

/// The relative links of a page.
pub(crate) fn links(text: &str) -> Vec<Link> {
    let bare = without_code(text);
    let mut found = Vec::new();
    for (at, _) in bare.match_indices("](") {
        let Some((target, _)) = bare.get(at + 2..).and_then(|rest| rest.split_once(')')) else {
            continue;
        };
        let Some(start) = bare.get(..at).and_then(|before| before.rfind('[')) else { continue };
        if target.contains("://")
            || target.starts_with("mailto:")
            || target.contains(char::is_whitespace)
        {
            continue;
        }
        let (path, anchor) = match target.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor.to_owned())),
            None => (target, None),
        };
        found.push(Link {
            line: bare.get(..at).unwrap_or_default().matches('\n').count() + 1,
            range: start..at + 2 + target.len() + 1,
            label: text.get(start + 1..at).unwrap_or_default().to_owned(),
            path: path.to_owned(),
            anchor,
        });
    }
    found
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut counts) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    let mut is_fenced = false;
    for line in text.lines() {
        is_fenced ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if is_fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let mut title = title.trim().to_owned();
        for link in links(&title).into_iter().rev() {
            title.replace_range(link.range, &link.label);
        }
        let kept = title.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
        let anchor: String =
            kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect();
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

/// A path relative to a page, from the root of the repository.
pub(crate) fn resolve(page: &str, path: &str) -> String {
    if path.is_empty() {
        return page.to_owned();
    }
    let mut resolved = PathBuf::new();
    for part in Path::new(page).parent().unwrap_or(Path::new("")).join(path).components() {
        // A link out of the repository remains as it is, and is not found.
        if part == Component::ParentDir && !resolved.pop() {
            return path.to_owned();
        }
        if let Component::Normal(name) = part {
            resolved.push(name);
        }
    }
    resolved.display().to_string()
}

/// The text of each page, by its path in the repository.
pub(crate) fn pages() -> Result<BTreeMap<String, String>> {
    let mut files = tree::files(&root().join("docs"), &[".md"])?;
    for entry in fs::read_dir(root())? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", tree::shown(&path)))?;
        Ok((tree::shown(&path), text))
    };
    files.into_iter().map(read).collect()
}

/// Faults of a link; none if it leads somewhere.
fn fault(page: &str, link: &Link, pages: &BTreeMap<String, String>) -> Option<String> {
    let target = resolve(page, &link.path);
    if !root().join(&target).exists() {
        return Some(format!("{target} does not exist"));
    }
    let anchor = link.anchor.as_ref()?;
    match pages.get(&target) {
        Some(text) if anchors(text).contains(anchor) => None,
        Some(_) => Some(format!("{target} has no heading with the anchor `{anchor}`")),
        None => Some(format!("{target} is not a page, and has no anchors")),
    }
}

/// The check `pages`.
pub(crate) fn check() -> Result<()> {
    let pages = pages()?;
    let (mut count, mut faults) = (0, Vec::new());
    for (page, text) in &pages {
        for link in links(text) {
            count += 1;
            if let Some(fault) = fault(page, &link, &pages) {
                faults.push(format!("  {page}:{}: {fault}", link.line));
            }
        }
    }
    let contents = pages.get(CONTENTS).with_context(|| format!("{CONTENTS} does not exist"))?;
    let listed: BTreeSet<String> =
        links(contents).iter().map(|link| resolve(CONTENTS, &link.path)).collect();
    for page in pages.keys() {
        let is_listed = listed.contains(page) || page.starts_with(DECISIONS) || page == CONTENTS;
        if page.starts_with("docs/") && !is_listed {
            faults.push(format!("  {page}: not in {CONTENTS}"));
        }
    }
    if !faults.is_empty() {
        bail!("{} faults of {} pages\n{}", faults.len(), pages.len(), faults.join("\n"));
    }
    println!("{count} links of {} pages", pages.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "a [b](c.md#d) `[no](x)` é [e\nf](#g)\n```\n[no](y)\n```\n[web](https://h/)\n";
        let found = links(text);
        let short: Vec<_> =
            found.iter().map(|it| (it.line, it.path.as_str(), it.anchor.as_deref())).collect();
        assert_eq!(short, [(1, "c.md", Some("d")), (2, "", Some("g"))]);
        assert_eq!(found.iter().map(|it| it.label.as_str()).collect::<Vec<_>>(), ["b", "e\nf"]);
        let texts: Vec<_> = found.iter().filter_map(|it| text.get(it.range.clone())).collect();
        assert_eq!(texts, ["[b](c.md#d)", "[e\nf](#g)"]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# A b, `c_d`!\n## A b, c_d\n### [L](m.md) x-y\n```\n# no\n```\n#no\n";
        let expected = ["a-b-c_d", "a-b-c_d-1", "l-x-y"].map(str::to_owned);
        assert_eq!(anchors(text), BTreeSet::from(expected));
    }

    #[test]
    fn paths_are_resolved_against_their_page() {
        assert_eq!(resolve("docs/a.md", "../README.md"), "README.md");
        assert_eq!(resolve("docs/specs/a.md", "../b.md"), "docs/b.md");
        assert_eq!(resolve("a.md", "../../etc/passwd"), "../../etc/passwd");
        assert_eq!(resolve("docs/a.md", ""), "docs/a.md");
    }
}
