//! Rules for the deviations that the parser of ResourceSync 0.1 reports, by their codes.

use crate::report::{Rule, rules as r};
use abreast_resourcesync::v0_1::Finding;

/// The deviation, without the way in which the parser handles it.
pub(super) fn message_of(finding: &Finding) -> String {
    let message = finding.message.as_str();
    let reason = message.strip_prefix("left out: ").and_then(|rest| rest.rsplit_once(" ("));
    reason.filter(|_| finding.code == "rs.entry").map_or(message, |(reason, _)| reason).to_owned()
}

/// The rule that a deviation violates.
pub(super) fn rule_of(finding: &Finding) -> &'static Rule {
    // The message about an ignored entry ends with the code of the reason.
    let code = finding.message.rsplit_once('(').map_or("", |(_, code)| code.trim_end_matches(')'));
    rule_of_code(if finding.code == "rs.entry" { code } else { finding.code })
}

pub(super) fn rule_of_code(code: &str) -> &'static Rule {
    match code {
        "rs.root" | "rs.version" | "rs.namespace" | "rs.nested" => &r::A_ROOT,
        "rs.wrapper" => &r::A_STANZA,
        "rs.type" | "rs.type-case" | "rs.type-missing" => &r::A_TYPE,
        "rs.prefix" => &r::A_PREFIX,
        "rs.loc" | "rs.loc-space" => &r::A_LOC,
        "rs.datetime" | "rs.zone" | "rs.datetime-form" | "rs.no-date" => &r::A_DATETIME,
        "rs.modified" => &r::A_MODIFIED_VALUE,
        "rs.change" | "rs.change-type" | "rs.expires" => &r::A_CHANGE,
        "rs.expires-future" => &r::A_EXPIRES,
        "rs.fixity" | "rs.fixity-hex" | "rs.fixity-type" => &r::A_FIXITY,
        "rs.length" => &r::A_SIZE,
        "rs.path" => &r::A_PATH,
        "rs.link" | "rs.meta" | "rs.links" => &r::A_LINK,
        "rs.previous" => &r::A_PREVIOUS,
        "rs.entries" => &r::A_ITEMS,
        "rs.bytes" | "xml.size" => &r::A_BYTES,
        "rs.order" => &r::A_ORDER,
        "rs.text" => &r::A_TEXT,
        "rs.repeated" | "rs.empty" | "rs.value" => &r::A_VALUE,
        other => r::of_sitemap_syntax(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Codes of the parser of 1.1 only, in files that both parsers use.
    const OF_1_1: &[&str] = &[
        "rs.capability",
        "rs.capability-case",
        "rs.capability-unknown",
        "rs.change-ignored",
        "rs.md",
        "rs.no-at",
        "rs.no-from",
        "rs.no-md",
        "rs.space",
    ];

    fn codes(folder: &Path, all: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                codes(&path, all);
            } else {
                let text = std::fs::read_to_string(path).unwrap();
                let quoted = text.split('"').filter(|word| word.starts_with("rs."));
                all.extend(quoted.map(str::to_owned));
            }
        }
    }

    #[test]
    fn each_deviation_of_a_document_has_its_rule() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/resourcesync/src");
        let mut all = BTreeSet::new();
        for folder in ["v0_1", "sitemap"] {
            codes(&source.join(folder), &mut all);
        }
        let is_due = |code: &&String| !OF_1_1.contains(&code.as_str()) && **code != "rs.entry";
        let is_xml = |code: &&String| rule_of_code(code).id == r::of_sitemap_syntax("").id;
        let missing: Vec<_> = all.iter().filter(is_due).filter(is_xml).collect();
        assert!(all.len() > 30 && missing.is_empty(), "{missing:?}");
    }
}
