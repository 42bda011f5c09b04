//! Lines that differ from the parent of the last commit, so that a fault shows the new lines first.

use std::collections::HashSet;
use std::process::Command;

use crate::process::{root, run_quietly};

/// Changed lines as path and number. Empty without git, or without that parent in a shallow clone.
pub(super) fn lines() -> HashSet<(String, usize)> {
    let mut git = Command::new("git");
    git.args(["diff", "--unified=0", "--no-color", "--no-ext-diff", "HEAD~1"]);
    run_quietly(git.current_dir(root())).map(|diff| in_diff(&diff)).unwrap_or_default()
}

fn in_diff(diff: &str) -> HashSet<(String, usize)> {
    let mut lines = HashSet::new();
    let mut path = String::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            name.clone_into(&mut path);
        } else if let Some((_, rest)) =
            line.strip_prefix("@@ ").and_then(|hunk| hunk.split_once('+'))
        {
            let range = rest.split(' ').next().unwrap_or_default();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let (start, count) = (start.parse().unwrap_or(0), count.parse().unwrap_or(0));
            lines.extend((start..start + count).map(|number: usize| (path.clone(), number)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_lines_are_found() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1 +2,2 @@ fn f\n-a\n+b\n+c\n@@ -9,2 +9,0 @@\n-d\n";
        let expected = [2, 3].map(|line| ("x.rs".to_owned(), line));
        assert_eq!(in_diff(diff), HashSet::from(expected));
    }
}
