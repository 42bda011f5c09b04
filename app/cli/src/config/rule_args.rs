//! The rules of `serve` and `build` that select the published files of a folder: flags and
//! configuration keys.

use crate::config::SetFile;
use crate::config::filter_rules::{ordered_rules, read_rules};
use abreast_core::filter::Filter;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;
use std::sync::Arc;

/// Leaves out what no rule before it takes.
const NOTHING_ELSE: &str = "- **";

/// Rules in the order in which they are given.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleArgs {
    pub(crate) rules: Vec<String>,
}

/// Arguments as clap parses them; [`RuleArgs`] restores the order between them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection of files in FOLDER (the first matching rule decides)")]
struct RawRuleArgs {
    /// Publish files matching this path or `type:` pattern, and no others except by other rules
    #[arg(long, value_name = "PATTERN", conflicts_with = "config")]
    include: Vec<String>,
    /// Do not publish files matching this path or `type:` pattern, as in .gitignore: '*.tmp',
    /// /drafts/, 'type:image/*'
    #[arg(long, value_name = "PATTERN", conflicts_with = "config")]
    exclude: Vec<String>,
    /// Add a rule as in filter files: "+ PATTERN" publishes, "- PATTERN" does not
    #[arg(long, value_name = "RULE", allow_hyphen_values = true, conflicts_with = "config")]
    filter: Vec<String>,
    /// Read rules from a file, one per line; lines that begin with # are comments
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    filter_from: Vec<PathBuf>,
}

impl RuleArgs {
    fn made(matches: &ArgMatches) -> Result<Self, String> {
        let raw = RawRuleArgs::from_arg_matches(matches).map_err(|error| error.to_string())?;
        let mut rules =
            ordered_rules(matches, [&raw.include, &raw.exclude, &raw.filter], &raw.filter_from)?;
        if !raw.include.is_empty() {
            rules.push(NOTHING_ELSE.to_owned());
        }
        filter_of(&rules)?;
        Ok(Self { rules })
    }
}

fn filter_of(rules: &[String]) -> Result<Filter, String> {
    let filter = Filter::new(rules.iter().map(String::as_str))?;
    abreast_source::check_filter(&filter)?;
    Ok(filter)
}

/// The selection of published files of a folder.
pub(crate) fn check(set: &SetFile, records: bool, problems: &mut Vec<String>) -> Arc<Filter> {
    let mut rules: Vec<String> = set.include.iter().map(|pattern| format!("+ {pattern}")).collect();
    rules.extend(set.exclude.iter().map(|pattern| format!("- {pattern}")));
    rules.extend(set.filter.iter().cloned());
    for file in &set.filter_from {
        match read_rules(file) {
            Ok(read) => rules.extend(read),
            Err(problem) => {
                problems.push(format!("`filter_from`: {problem} (help: docs/filters.md)"));
            }
        }
    }
    if !set.include.is_empty() {
        rules.push(NOTHING_ELSE.to_owned());
    }
    if records && !rules.is_empty() {
        problems.push(
            "`filter`: a set of records has no files to choose from (help: leave the rules out)"
                .to_owned(),
        );
    }
    match filter_of(&rules) {
        Ok(filter) => Arc::new(filter),
        Err(problem) => {
            problems.push(format!("`filter`: {problem} (help: docs/filters.md)"));
            Arc::default()
        }
    }
}

impl FromArgMatches for RuleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::made(matches).map_err(|message| {
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, message + "\n")
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RuleArgs {
    fn augment_args(command: Command) -> Command {
        RawRuleArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        RawRuleArgs::augment_args_for_update(command)
    }
}
