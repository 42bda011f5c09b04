//! The documentation as a site, by mdBook: the pages of `docs/SUMMARY.md` and the design decisions, in `target/book`.
//!
//! Pages link to each other as GitHub shows them. For the site, they are copied to `target/book-src`, and their links are
//! rewritten: a folder's `README.md` is its `index.md`, linked files are copied, and a link to anything else is text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::pages::{self, CONTENTS, DECISIONS};
use crate::process::{self, cargo, find_program, is_set, lock, root, target};
use crate::tree;

/// The version of mdBook, which `cargo install` compiles once: about two minutes with two processors.
const VERSION: &str = "0.5.4";

const SETTINGS: &str = "\
[book]
title = \"abreast\"
language = \"en\"
src = \".\"

[build]
build-dir = \"../book\"
create-missing = false

[output.html]
smart-punctuation = false
no-section-label = true
additional-css = [\"book.css\"]

[output.html.fold]
enable = true

[output.html.print]
enable = false
";

/// Most pages have wide tables.
const STYLE: &str = ":root { --content-max-width: 1050px; }\n";

/// `cargo xtask book`.
pub(crate) fn run() -> Result<()> {
    let program = mdbook()?;
    let (source, site) = (target().join("book-src"), target().join("book"));
    for folder in [&source, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    let count = write_source(&source)?;
    process::run_quietly(Command::new(program).arg("build").arg(&source))?;
    for made in ["book.toml", "SUMMARY.md"] {
        // mdBook copies every file that is not a page.
        let _ = fs::remove_file(site.join(made));
    }
    check(&site)?;
    println!("{count} pages in {}", site.join("index.html").display());
    Ok(())
}

/// The program mdBook, installed below `target/tools` if the machine does not have it.
fn mdbook() -> Result<PathBuf> {
    if let Some(program) = find_program("mdbook") {
        return Ok(program);
    }
    let _lock = lock()?;
    let folder = target().join("tools");
    let program = folder.join("bin/mdbook");
    if program.exists() {
        return Ok(program);
    }
    ensure!(
        !is_set("ABREAST_NO_INSTALL"),
        "mdbook is not installed, and `ABREAST_NO_INSTALL` is set\n  help: cargo install --locked mdbook@{VERSION}"
    );
    println!("installing mdbook {VERSION} in {}", folder.display());
    let package = format!("mdbook@{VERSION}");
    let mut install = cargo(&["install", "--quiet", "--locked", &package]);
    // Without the features that watch files and serve the site.
    install.args(["--no-default-features", "--features", "search", "--root"]).arg(&folder);
    process::with_retries("installing mdbook", || process::run(&mut install))?;
    Ok(program)
}

/// The place of a page in the source of the site.
fn place(page: &str) -> String {
    match page.strip_suffix("README.md") {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => format!("{folder}index.md"),
        _ => page.to_owned(),
    }
}

/// A place as a link from a page of the site.
fn relative(from: &str, to: &str) -> String {
    format!("{}{to}", "../".repeat(from.matches('/').count()))
}

/// Whether a linked file is not Markdown, of which mdBook copies pages only.
fn is_other_file(path: &Path) -> bool {
    path.is_file() && path.extension().is_none_or(|it| it != "md")
}

/// A page with the links of the site; files that it links to are added to `files`.
fn rewritten(
    page: &str,
    text: &str,
    listed: &BTreeSet<String>,
    files: &mut BTreeSet<String>,
) -> String {
    let mut text = text.to_owned();
    for link in pages::links(&text).into_iter().rev() {
        let target = pages::resolve(page, &link.path);
        let anchor = link.anchor.map(|it| format!("#{it}")).unwrap_or_default();
        let place = if target == DECISIONS {
            format!("{DECISIONS}/index.md")
        } else if listed.contains(&target) {
            place(&target)
        } else if is_other_file(&root().join(&target)) {
            files.insert(target.clone());
            target
        } else {
            text.replace_range(link.range, &link.label);
            continue;
        };
        let link_text = match link.path.as_str() {
            "" => format!("[{}]({anchor})", link.label),
            _ => format!("[{}]({}{anchor})", link.label, relative(page, &place)),
        };
        text.replace_range(link.range, &link_text);
    }
    text
}

/// Writes the source of the site, and returns the number of its pages.
fn write_source(folder: &Path) -> Result<usize> {
    let all = pages::pages()?;
    let contents = all.get(CONTENTS).with_context(|| format!("{CONTENTS} does not exist"))?;
    let decisions = decisions(&all);
    let mut listed: BTreeSet<String> =
        pages::links(contents).iter().map(|link| pages::resolve(CONTENTS, &link.path)).collect();
    listed.extend(decisions.iter().map(|(page, _)| page.clone()));

    let mut files = BTreeSet::new();
    for page in &listed {
        let text = all
            .get(page)
            .with_context(|| format!("{CONTENTS} lists {page}, which is not a page"))?;
        write(folder, &place(page), &rewritten(page, text, &listed, &mut files))?;
    }
    let mut index =
        "# Design decisions\n\nOne page each, superseded but never edited.\n\n".to_owned();
    let mut summary = String::new();
    for line in contents.lines() {
        // The table of contents is at the root of the site's source.
        let line = rewritten(CONTENTS, line, &listed, &mut files).replace("](../", "](");
        let _ = writeln!(summary, "{line}");
    }
    let _ = writeln!(summary, "- [Design decisions]({DECISIONS}/index.md)");
    for (page, title) in &decisions {
        let _ = writeln!(summary, "    - [{title}]({page})");
        let _ = writeln!(index, "- [{title}]({})", page.rsplit('/').next().unwrap_or(page));
    }
    write(folder, "SUMMARY.md", &summary)?;
    write(folder, &format!("{DECISIONS}/index.md"), &index)?;
    write(folder, "book.toml", SETTINGS)?;
    write(folder, "book.css", STYLE)?;
    for file in files {
        let to = folder.join(&file);
        create_parent(&to)?;
        fs::copy(root().join(&file), &to).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(listed.len())
}

/// The design decisions with their titles.
fn decisions(all: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let title = |text: &str| {
        text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).to_owned()
    };
    let pages = all.iter().filter(|(page, _)| page.starts_with(DECISIONS));
    pages.map(|(page, text)| (page.clone(), title(text))).collect()
}

fn create_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))
}

fn write(folder: &Path, place: &str, text: &str) -> Result<()> {
    let path = folder.join(place);
    create_parent(&path)?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Fails if a page of the site links to a file or an anchor that the site does not have.
fn check(site: &Path) -> Result<()> {
    let mut texts = BTreeMap::new();
    for file in tree::files(site, &[".html"])? {
        let text = fs::read_to_string(&file)?;
        texts.insert(file, text);
    }
    let mut faults = BTreeSet::new();
    for (file, text) in &texts {
        // The page for unknown addresses is written for the root of a server.
        if file.ends_with("404.html") {
            continue;
        }
        let main = text.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>"));
        for link in main.map_or("", |(main, _)| main).split("href=\"").skip(1) {
            let link = link.split('"').next().unwrap_or_default();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let page = file.strip_prefix(site)?.display().to_string();
            let target = site.join(pages::resolve(&page, path));
            let has_anchor =
                texts.get(&target).is_none_or(|text| text.contains(&format!("id=\"{anchor}\"")));
            if !target.exists() || !anchor.is_empty() && !has_anchor {
                faults.insert(format!("  {page}: {link}"));
            }
        }
    }
    if !faults.is_empty() {
        let faults: Vec<String> = faults.into_iter().collect();
        bail!("{} links of the site lead nowhere\n{}", faults.len(), faults.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_pages_become_links_of_the_site() {
        let listed =
            BTreeSet::from(["README.md", "docs/a.md", "docs/README.md"].map(str::to_owned));
        let mut files = BTreeSet::new();
        let text = "[r](../README.md#x) [a](a.md) [d](decisions) [c](../Cargo.toml) [b](../bench) [s](#s) [h](https://h/)";
        let expected = "[r](../index.md#x) [a](../docs/a.md) [d](../docs/decisions/index.md) [c](../Cargo.toml) b [s](#s) [h](https://h/)";
        assert_eq!(rewritten("docs/a.md", text, &listed, &mut files), expected);
        assert_eq!(files, BTreeSet::from(["Cargo.toml".to_owned()]));
    }
}
