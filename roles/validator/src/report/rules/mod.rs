//! The table of rules, shown in `docs/validating.md`: one file for each protocol.

use crate::report::rule::Rule;

/// Declares rules, and lists them in this order as `TABLE`.
macro_rules! rules {
    ($($name:ident: $id:literal, $level:ident, $severity:ident / $lenient:ident, $cites:literal, $title:literal, $help:literal;)*) => {
        $(pub(crate) static $name: Rule = Rule {
            id: $id, level: $level, severity: $severity, lenient: $lenient, cites: $cites, title: $title, help: $help,
        };)*
        pub(super) const TABLE: &[&Rule] = &[$(&$name),*];
    };
}

mod change_feeds;
mod documents;
mod resourcesync;
mod resourcesync_0_1;
mod sdshare;
mod walk;

pub(crate) use change_feeds::*;
pub(crate) use documents::*;
pub(crate) use resourcesync::*;
pub(crate) use resourcesync_0_1::*;
pub(crate) use sdshare::*;
pub(crate) use walk::*;

const TABLES: [&[&Rule]; 6] = [
    documents::TABLE,
    resourcesync::TABLE,
    sdshare::TABLE,
    change_feeds::TABLE,
    resourcesync_0_1::TABLE,
    walk::TABLE,
];
const COUNT: usize = {
    let (mut count, mut at) = (0, 0);
    while at < TABLES.len() {
        count += TABLES[at].len();
        at += 1;
    }
    count
};

/// All rules in the order of the specifications.
pub static RULES: &[&Rule] = &joined();

const fn joined() -> [&'static Rule; COUNT] {
    let mut rules = [TABLES[0][0]; COUNT];
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut at = 0;
        while at < TABLES[table].len() {
            rules[count] = TABLES[table][at];
            count += 1;
            at += 1;
        }
        table += 1;
    }
    rules
}

/// Rule that an error of the XML reader violates, by the code of the error.
pub(crate) fn of_syntax(code: &str) -> &'static Rule {
    match code {
        "xml.doctype" => &DOCTYPE,
        "xml.encoding" => &UTF_8,
        _ => &WELL_FORMED,
    }
}

/// As [`of_syntax`], for a document in a Sitemap format.
pub(crate) fn of_sitemap_syntax(code: &str) -> &'static Rule {
    match code {
        "xml.encoding" => &SITEMAP_UTF_8,
        other => of_syntax(other),
    }
}
