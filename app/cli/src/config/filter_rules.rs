//! Rules that select resources or files, from options and from files.

use abreast_core::filter::Filter;
use clap::ArgMatches;
use std::path::PathBuf;

/// Largest filter file read.
const FILTER_FILE_MAX: u64 = 1 << 20;

/// Rules in the order in which they were given: patterns to take, patterns to leave out, rules as
/// written, files of rules.
pub(crate) fn ordered_rules(
    matches: &ArgMatches,
    [include, exclude, filter]: [&[String]; 3],
    filter_from: &[PathBuf],
) -> Result<Vec<String>, String> {
    let mut rules: Vec<(usize, String)> = Vec::new();
    let mut add = |id: &str, texts: Vec<Vec<String>>| {
        let places = matches.indices_of(id).into_iter().flatten();
        rules.extend(
            places
                .zip(texts)
                .flat_map(|(place, texts)| texts.into_iter().map(move |text| (place, text))),
        );
    };
    let signed = |sign: &str, patterns: &[String]| {
        patterns.iter().map(|pattern| vec![format!("{sign} {pattern}")]).collect::<Vec<_>>()
    };
    add("include", signed("+", include));
    add("exclude", signed("-", exclude));
    add("filter", filter.iter().map(|rule| vec![rule.clone()]).collect());
    add("filter_from", filter_from.iter().map(|path| read_rules(path)).collect::<Result<_, _>>()?);
    // The sort is stable, so rules from one file keep their order.
    rules.sort_by_key(|(place, _)| *place);
    Ok(rules.into_iter().map(|(_, rule)| rule).collect())
}

pub(crate) fn read_rules(path: &std::path::Path) -> Result<Vec<String>, String> {
    let wrong =
        |why: &dyn std::fmt::Display| format!("cannot read rules from `{}`: {why}", path.display());
    let length = std::fs::metadata(path).map_err(|error| wrong(&error))?.len();
    if length > FILTER_FILE_MAX {
        return Err(wrong(&"it is larger than 1 MiB"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    // Parse the rules here, so that an error contains the path of the file.
    let rules: Vec<String> = Filter::lines(&text).map(str::to_owned).collect();
    Filter::new(rules.iter().map(String::as_str)).map_err(|error| wrong(&error))?;
    Ok(rules)
}
