//! The targets of all sections of `docs/benchmarks.md`, as a table at its top.

use std::fmt::Write as _;

/// The table is between these lines.
const BLOCK: (&str, &str) = ("<!-- targets -->\n", "<!-- /targets -->\n");

/// A section of the page.
struct Section<'p> {
    title: &'p str,
    /// The date of its last measurement.
    date: &'p str,
    targets: Vec<Target<'p>>,
}

/// A row of a table of targets.
struct Target<'p> {
    what: &'p str,
    found: &'p str,
    wanted: &'p str,
    is_met: bool,
}

/// The page with a new table of all targets, after its introduction.
pub(crate) fn summarised(page: &str) -> String {
    let table = table(&sections(page));
    if let Some((before, rest)) = page.split_once(BLOCK.0)
        && let Some((_, after)) = rest.split_once(BLOCK.1)
    {
        return format!("{before}{}{table}{}{after}", BLOCK.0, BLOCK.1);
    }
    // After the first paragraph below the title.
    let end = page.match_indices("\n\n").nth(1).map_or(page.len(), |(at, _)| at + 2);
    let (before, after) = page.split_at(end);
    format!("{before}{}{table}{}\n{after}", BLOCK.0, BLOCK.1)
}

fn sections(page: &str) -> Vec<Section<'_>> {
    let parts = page.split("<!-- bench:").skip(1);
    let section = |part| -> Option<Section<'_>> {
        let text = str::split_once(part, "<!-- /bench:").map_or(part, |(text, _)| text);
        let title = text.lines().find_map(|line| line.strip_prefix("## "))?;
        let dated = text.lines().find(|line| line.contains("; load "))?;
        let is_date = |word: &&str| word.starts_with("20") && word.len() == "2000-01-01.".len();
        let date = dated.split(' ').find(is_date)?.trim_end_matches('.');
        Some(Section { title, date, targets: text.lines().filter_map(target).collect() })
    };
    parts.filter_map(section).collect()
}

fn target(line: &str) -> Option<Target<'_>> {
    let fields: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [what, found, wanted, verdict] = fields[..] else { return None };
    let is_met = match verdict {
        "pass" => true,
        "**fail**" => false,
        _ => return None,
    };
    Some(Target { what, found, wanted, is_met })
}

fn table(sections: &[Section<'_>]) -> String {
    let all = || sections.iter().flat_map(|section| &section.targets);
    let met = |section: &Section<'_>| section.targets.iter().filter(|target| target.is_met).count();
    let failed = all().filter(|target| !target.is_met).count();
    let mut text = format!(
        "## All targets\n\n{} of {} targets are met. The notes of a section have the reason for each failed target.\n\n\
         | section | met | failed | measured |\n|---|---|---|---|\n",
        all().count() - failed,
        all().count()
    );
    for section in sections {
        let (met, count) = (met(section), section.targets.len());
        let link = section.title.to_lowercase().replace(' ', "-");
        let link: String =
            link.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        let _ = writeln!(
            text,
            "| [{}](#{link}) | {met} | {} | {} |",
            section.title,
            count - met,
            section.date
        );
    }
    text.push_str("\n| failed target | found | wanted |\n|---|---|---|\n");
    for target in all().filter(|target| !target.is_met) {
        let _ = writeln!(text, "| {} | {} | {} |", target.what, target.found, target.wanted);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const PAGE: &str = "# Benchmarks\n\nWritten.\n\n<!-- bench:a -->\n## Doing it\n\n\
        | target | found | wanted | |\n|---|---|---|---|\n| speed | 2 × | ≥ 1 × | pass |\n\
        | memory | 3 MiB | ≤ 2 MiB | **fail** |\n\n2026-11-23. A machine; load 1 before, 1 after. `cargo xtask bench a`\n<!-- /bench:a -->\n";

    #[test]
    fn the_table_is_at_the_top_and_is_replaced() {
        let page = summarised(PAGE);
        assert!(page.starts_with("# Benchmarks\n\nWritten.\n\n<!-- targets -->\n"), "{page}");
        assert!(page.contains("1 of 2 targets are met"), "{page}");
        assert!(page.contains("| [Doing it](#doing-it) | 1 | 1 | 2026-11-23 |"), "{page}");
        assert!(
            page.contains("| memory | 3 MiB | ≤ 2 MiB |\n<!-- /targets -->\n\n<!-- bench:a -->")
        );
        assert_eq!(summarised(&page), page);
        let better = summarised(&page.replace("| ≤ 2 MiB | **fail** |", "| ≤ 4 MiB | pass |"));
        assert!(better.contains("2 of 2 targets are met"), "{better}");
    }

    /// A note `- *PART OF A NAME*, *PART OF A NAME*: REASON` explains failed targets.
    #[test]
    fn each_failed_target_has_its_reason() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks.md");
        let page = std::fs::read_to_string(path).unwrap();
        for part in page.split("<!-- bench:").skip(1) {
            let notes: Vec<&str> = part
                .lines()
                .filter_map(|line| line.strip_prefix("- *")?.split_once("*: "))
                .flat_map(|(names, _)| names.split("*, *"))
                .collect();
            for target in part.lines().filter_map(target).filter(|target| !target.is_met) {
                let is_explained = notes.iter().any(|name| target.what.contains(name));
                assert!(is_explained, "no note explains the failed target `{}`", target.what);
            }
        }
        assert_eq!(summarised(&page), page, "`cargo xtask bench` writes the table");
    }
}
