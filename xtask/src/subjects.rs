//! Subjects of commits: one topic, in the imperative, short enough for one line of a log.

use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{root, run_quietly};

/// Most characters of a subject.
const LENGTH_MAX: usize = 72;
/// Most commits that are checked.
const COMMITS_MAX: &str = "--max-count=200";
/// First words that are not a verb in the imperative.
const NOT_VERBS: [&str; 30] = [
    "a", "an", "the", "no", "one", "two", "some", "more", "each", "every", "what", "when", "where",
    "who", "it", "its", "this", "that", "these", "those", "adds", "fixes", "removes", "changes",
    "makes", "uses", "moves", "renames", "returns", "words",
];
/// Verbs that end as participles do.
const VERBS: [&str; 10] =
    ["bring", "embed", "exceed", "feed", "need", "ping", "proceed", "seed", "speed", "string"];

/// `cargo xtask subjects [RANGE]`. Without a range, the commits that no remote branch has: these can
/// still be amended. A repository without a remote has no such commits, and a clone of CI neither.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let range: Vec<&str> = match arguments {
        [] if git(&["remote"]).unwrap_or_default().is_empty() => {
            println!("no remote, so no commits to check; `cargo xtask subjects RANGE` checks some");
            return Ok(());
        }
        [] => vec!["HEAD", "--not", "--remotes"],
        [range] => vec![range],
        _ => bail!("`subjects` takes one range of commits, such as `main..HEAD`"),
    };
    let log = ["log", "--no-merges", "--format=%h %s", COMMITS_MAX];
    let log = git(&[&log, &range[..], &["--"]].concat())?;
    let faults: Vec<String> = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(commit, subject)| {
            Some(format!("  {commit} {subject}\n    {}", fault(subject)?))
        })
        .collect();
    if !faults.is_empty() {
        bail!(
            "{} subjects of commits have faults\n{}\n  help: git commit --amend, or git rebase -i",
            faults.len(),
            faults.join("\n")
        );
    }
    println!("{} subjects of commits", log.lines().count());
    Ok(())
}

fn git(arguments: &[&str]) -> Result<String> {
    run_quietly(Command::new("git").args(arguments).current_dir(root()))
}

/// The first fault of a subject such as `hub: refuse private callbacks`.
fn fault(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > LENGTH_MAX {
        return Some(format!("{length} characters; at most {LENGTH_MAX} fit in a line of a log"));
    }
    if subject.contains(';') {
        return Some("two topics; make a commit of each".to_owned());
    }
    let text = subject.split_once(": ").map_or(subject, |(_, text)| text);
    let first = text.split(' ').next().unwrap_or_default().to_lowercase();
    let is_participle =
        (first.ends_with("ing") || first.ends_with("ed")) && !VERBS.contains(&first.as_str());
    (is_participle || NOT_VERBS.contains(&first.as_str()))
        .then(|| format!("`{first}` is not a verb in the imperative, such as `refuse`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_one_topic_in_the_imperative_pass() {
        for subject in
            ["hub: refuse private callbacks behind a proxy", "destination, net: feed pages lazily"]
        {
            assert_eq!(fault(subject), None);
        }
    }

    #[test]
    fn long_double_and_descriptive_subjects_fail() {
        for (subject, expected) in [
            (format!("hub: refuse {}", "x".repeat(LENGTH_MAX)), "84 characters"),
            ("hub: refuse callbacks; net: repair a test".to_owned(), "two topics"),
            ("hub: a callback that is refused".to_owned(), "`a` is not"),
            ("Added a test".to_owned(), "`added` is not"),
        ] {
            let found = fault(&subject).unwrap_or_default();
            assert!(found.contains(expected), "{subject}: {found}");
        }
    }
}
