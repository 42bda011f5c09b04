//! Blocks of prose: a comment of Rust code, or a paragraph, list item or table row of Markdown.

use super::text;

/// A word of a block, in lower case.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Line of the file, counted from 1.
    pub(super) line: usize,
    pub(super) before: Before,
}

/// The characters between a word and the word before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: the word is the first word of the block.
    Block,
    /// The end of a sentence or clause: `.`, `;` or `:`.
    Sentence,
    /// Any other punctuation.
    Mark,
    Space,
}

/// Comments that fill lines of Rust code. Code after a comment's fence and code between backquotes
/// is not prose: the latter counts as one word.
pub(super) fn of_rust(code: &str) -> Vec<Vec<Word>> {
    let mut blocks = Blocks::default();
    let mut in_code = false;
    for (at, line) in code.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            blocks.end();
            in_code = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']);
        if comment.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            blocks.add(at + 1, comment);
        }
    }
    blocks.finish()
}

/// Paragraphs, list items and table rows of Markdown.
pub(super) fn of_markdown(document: &str) -> Vec<Vec<Word>> {
    let mut blocks = Blocks::default();
    let mut previous = 0;
    for (number, line) in text::markdown_prose(document) {
        let trimmed = line.trim_start();
        let begins = ["- ", "* ", "|", "#"].iter().any(|mark| trimmed.starts_with(mark))
            || trimmed.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if begins || trimmed.is_empty() || number != previous + 1 {
            blocks.end();
        }
        blocks.add(number, trimmed);
        previous = number;
    }
    blocks.finish()
}

#[derive(Default)]
struct Blocks {
    done: Vec<Vec<Word>>,
    open: Vec<Word>,
}

impl Blocks {
    fn end(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open));
        }
    }

    fn finish(mut self) -> Vec<Vec<Word>> {
        self.end();
        self.done
    }

    /// Adds the words of a line to the open block.
    fn add(&mut self, line: usize, prose: &str) {
        let mut before = if self.open.is_empty() { Before::Block } else { Before::Space };
        let mut word = String::new();
        let mut in_code = false;
        for character in prose.chars().chain([' ']) {
            if character == '`' {
                in_code = !in_code;
                word.push_str(if in_code { "`" } else { "" });
                continue;
            }
            if in_code {
                continue;
            }
            if character.is_alphanumeric() || matches!(character, '_' | '-' | '\'') {
                word.extend(character.to_lowercase());
                continue;
            }
            if word.chars().any(|character| character != '-') {
                self.open.push(Word { text: std::mem::take(&mut word), line, before });
                before = Before::Space;
            }
            word.clear();
            before = match (before, character) {
                (_, '.' | ';' | ':') if before != Before::Block => Before::Sentence,
                (before, character) if character.is_whitespace() => before,
                (Before::Space, _) => Before::Mark,
                (before, _) => before,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(blocks: &[Vec<Word>]) -> Vec<String> {
        let words = |block: &Vec<Word>| {
            let words = block.iter().map(|word| format!("{}{}", word.line, word.text));
            words.collect::<Vec<_>>().join(" ")
        };
        blocks.iter().map(words).collect()
    }

    #[test]
    fn comments_become_blocks_without_code() {
        let code =
            "/// One `a b` two.\n/// ```\n/// let x;\n/// ```\n/// Three\nfn f() {}\n// Four\n";
        assert_eq!(shown(&of_rust(code)), ["1one 1` 1two 5three", "7four"]);
    }

    #[test]
    fn paragraphs_items_and_rows_become_blocks() {
        let document =
            "# Title\nOne\ntwo\n- three\n  four\n| five | six |\n\n```\ncode\n```\nseven\n";
        let expected = ["1title 2one 3two", "4three 5four", "6five 6six", "11seven"];
        assert_eq!(shown(&of_markdown(document)), expected);
    }

    #[test]
    fn the_marks_between_words_are_known() {
        let blocks = of_markdown("(One, two: three (four) five");
        let before: Vec<Before> = blocks[0].iter().map(|word| word.before).collect();
        assert_eq!(
            before,
            [Before::Block, Before::Mark, Before::Sentence, Before::Mark, Before::Mark]
        );
    }
}
