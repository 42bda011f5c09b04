//! Comments on public items that a reader of the reference cannot use: too short, or about
//! something that only the line before names.

/// Key in `xtask/prose.toml` of comments that a pronoun begins.
pub(super) const PRONOUN: &str = "doc_pronoun";
/// Key in `xtask/prose.toml` of comments that are too short.
pub(super) const SHORT: &str = "doc_short";
/// Most words of a comment that is too short.
const SHORT_MAX: usize = 4;
/// First words that need the line before.
const PRONOUNS: [&str; 7] = ["It", "Its", "They", "Those", "These", "That", "Such"];

/// Lines of comments on public items.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// The first word is a pronoun.
    pub(super) pronouns: Vec<usize>,
    /// The comment has at most [`SHORT_MAX`] words.
    pub(super) short: Vec<usize>,
}

/// Checks the comments on items with `pub`, on variants of public enums and on members of public
/// traits, in code that rustfmt has formatted.
pub(super) fn places(code: &str) -> Places {
    let mut places = Places::default();
    let mut comment: Option<(usize, Vec<&str>)> = None;
    // Indentation of the public enum or trait around the line.
    let mut container: Option<usize> = None;
    let mut in_attribute = false;
    for (at, line) in code.lines().enumerate() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if let Some(text) = trimmed.strip_prefix("///") {
            let (_, words) = comment.get_or_insert((at + 1, Vec::new()));
            words.extend(text.split_whitespace());
            continue;
        }
        if in_attribute || trimmed.starts_with("#[") {
            // An attribute over several lines ends with `)]` in a line of its own.
            in_attribute = !trimmed.trim_end().ends_with(']');
            continue;
        }
        let is_public = trimmed.starts_with("pub ");
        if let Some((line, words)) = comment.take().filter(|_| is_public || container.is_some()) {
            let begins_with = |pronoun| words.first() == Some(pronoun);
            if PRONOUNS.iter().any(begins_with) || words.starts_with(&["This", "one"]) {
                places.pronouns.push(line);
            }
            if words.len() <= SHORT_MAX {
                places.short.push(line);
            }
        }
        let opens = ["pub enum ", "pub trait ", "pub unsafe trait "];
        if opens.iter().any(|text| trimmed.starts_with(text)) && !trimmed.ends_with('}') {
            container = Some(indent);
        } else if container == Some(indent) && trimmed.starts_with('}') {
            container = None;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_are_checked_and_private_ones_are_not() {
        let code = "\
/// Short.
pub struct A {
    /// Its name, in full and for people.
    #[serde(
        default
    )]
    pub name: String,
    /// Short.
    size: u64,
}
/// Kinds of things that a list can contain.
pub enum Kind {
    /// Such
    /// a thing.
    One,
}
/// Its end.
pub(crate) fn hidden() {}
/// This one is long enough to be read.
pub fn shown() {}
";
        assert_eq!(places(code), Places { pronouns: vec![3, 13, 19], short: vec![1, 13] });
    }
}
