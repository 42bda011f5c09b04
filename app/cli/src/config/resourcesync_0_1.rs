//! Settings of a set's documents of ResourceSync 0.1, and categories of files.

use crate::config::settings::{CategoryFile, OptionsFile};
use abreast_source::links::{LinkRecord, Links, RuleOptions, SUBJECT, absolute_uri};
use abreast_source::projection::resourcesync_0_1::Options;
use abreast_webtypes::encode_segment;

/// Checks `resourcesync_0_1`.
pub(super) fn check(file: Option<OptionsFile>, problems: &mut Vec<String>) -> Options {
    let file = file.unwrap_or_default();
    if let Some(base) = &file.oai_pmh {
        let checked = crate::values::address::http_url(base).and_then(|url| absolute_uri(&url));
        if let Err(reason) = checked {
            problems.push(format!(
                "`resourcesync_0_1.oai_pmh`: `{base}`: {reason} (help: for example \
                 `https://example.org/oai`)"
            ));
        }
    }
    Options { oai_pmh: file.oai_pmh, robots: file.robots.unwrap_or(false), ..Options::default() }
}

/// Checks the categories of a set, which are links of its files.
pub(super) fn check_categories(
    categories: &[CategoryFile],
    files: bool,
    slug: &str,
    problems: &mut Vec<String>,
) -> Vec<RuleOptions> {
    if !files && !categories.is_empty() {
        problems.push(
            "`set.categories`: only files get categories by their paths (help: state them with the \
             records, as links; the types of entities are categories by themselves)"
                .to_owned(),
        );
    }
    let mut rules = Vec::new();
    for (number, category) in (1..).zip(categories) {
        let mut problem = |text: &str| {
            problems.push(format!("`set.categories` {number} of set `{slug}`: {text}"));
        };
        let href = match (&category.uri, &category.word) {
            (Some(uri), None) => uri.clone(),
            (None, Some(word)) if category.title.is_none() && !word.is_empty() => {
                let mut href = "data:,".to_owned();
                encode_segment(word.as_bytes(), &mut href);
                href
            }
            _ => {
                problem(
                    "it is either a `uri`, perhaps with a `title`, or a `word` (help: for example \
                     `uri = \"http://id.example.org/frogs\"`)",
                );
                continue;
            }
        };
        let title = category.title.clone();
        let link = LinkRecord { rel: SUBJECT.to_owned(), href, title, ..LinkRecord::default() };
        let rule = RuleOptions { pattern: category.pattern.clone(), link, if_exists: false };
        match Links::new(std::slice::from_ref(&rule), "https://example.org/") {
            Ok(_) => rules.push(rule),
            Err(wrong) => wrong.iter().for_each(|(_, why)| {
                let why = why.replace("`href`", "`uri`");
                let help = if why.contains("`uri`") {
                    "placeholders are those of links, such as `{stem}`: docs/links.md"
                } else {
                    "`match` is a pattern such as `*.pdf`"
                };
                problem(&format!("{why} (help: {help})"));
            }),
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(category: CategoryFile, files: bool) -> (Vec<RuleOptions>, String) {
        let mut problems = Vec::new();
        let rules = check_categories(&[category], files, "set", &mut problems);
        (rules, problems.join("\n"))
    }

    fn category(uri: Option<&str>, title: Option<&str>, word: Option<&str>) -> CategoryFile {
        let [uri, title, word] = [uri, title, word].map(|text| text.map(str::to_owned));
        CategoryFile { pattern: "*.pdf".to_owned(), uri, title, word }
    }

    #[test]
    fn a_category_is_a_uri_or_a_word() {
        let frogs = "http://id.example.org/frogs";
        let (rules, told) = check_one(category(Some(frogs), Some("Frösche"), None), true);
        assert_eq!((rules[0].link.href.as_str(), told.as_str()), (frogs, ""));
        let (rules, _) = check_one(category(None, None, Some("wet {stem} & é")), true);
        assert_eq!(rules[0].link.href, "data:,wet%20%7Bstem%7D%20&%20%C3%A9");
        for (uri, title, word) in [
            (None, None, None),
            (Some(frogs), None, Some("frogs")),
            (None, Some("Frogs"), Some("frogs")),
            (None, None, Some("")),
            (Some(frogs), Some("a\nb"), None),
        ] {
            let (rules, told) = check_one(category(uri, title, word), true);
            assert!(rules.is_empty() && told.contains("help: "), "{told}");
        }
        assert!(check_one(category(Some(frogs), None, None), false).1.contains("only files"));
        let (_, told) = check_one(category(Some("http://id.example.org/{frog}"), None, None), true);
        assert!(told.contains("`uri`: ") && !told.contains("href"), "{told}");
    }

    #[test]
    fn an_oai_pmh_base_url_is_a_web_address() {
        let told = |base: &str| {
            let mut problems = Vec::new();
            let file = OptionsFile { oai_pmh: Some(base.to_owned()), robots: None };
            check(Some(file), &mut problems);
            problems.join("\n")
        };
        assert_eq!(told("https://example.org/oai"), "");
        for base in [
            "example.org/oai",
            "ftp://example.org/oai",
            "https://example.org/a b",
            "https://example.org/<a>",
            "https://example.org/oai#part",
            "http:example.org",
            "httpx://example.org/oai",
            "https://example.org:99999/oai",
            "https://",
        ] {
            assert!(told(base).contains("help: "), "{base}");
        }
    }
}
