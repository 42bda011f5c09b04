//! Constructions that make prose hard to read, and how many of them a text may have.
//!
//! A limit is the highest rate in the comments of oxigraph, object_store, rustic_core, ripgrep and
//! quickwit, counted in the same way.

use super::blocks::{Before, Word};
use super::public_docs;

/// One kind of construction.
pub(super) struct Construction {
    /// Key in `xtask/prose.toml`.
    pub(super) name: &'static str,
    /// Places per 1,000 words that a text may have.
    pub(super) limit: f64,
    /// Sequences of words. `|` separates alternatives, `*` is any word, `^` stands for the begin of
    /// a block, and `.` for the begin of a sentence.
    phrases: &'static [&'static str],
    pub(super) help: &'static str,
}

/// Every kind that is counted.
pub(super) const CONSTRUCTIONS: [Construction; 12] = [
    Construction {
        name: "what",
        limit: 0.2,
        phrases: &[
            "what is|was|are|were|has|had|it|they|a|an|the|others|no|cannot|may|must|can|follow|\
             follows|come|comes|came|belong|belongs|remain|remains|led|lead|leads",
        ],
        help: "name the thing: the listed digest, not \"what is stated\"",
    },
    Construction {
        name: "named",
        limit: 2.0,
        phrases: &["state|states|stated|stating|names|named|naming"],
        help: "specify, contain, list, give; the listed length, not \"the length that is stated\"",
    },
    Construction {
        name: "of_it",
        limit: 0.5,
        phrases: &["of it|them|others|one|that|those|use|such", "of its|their own"],
        help: "repeat the noun: the rest of the body, not \"the rest of it\"",
    },
    Construction {
        name: "bare_pronoun",
        limit: 0.4,
        // Not `that`: "checks that" and "the prefix that" have a clause, not a pronoun.
        phrases: &["^ * it|them|its|those"],
        help: "verb and noun: adds the entry, not \"adds it\"",
    },
    Construction {
        name: "keep",
        limit: 1.9,
        phrases: &["keep|keeps|kept|keeping"],
        help: "store, cache, retain, preserve",
    },
    Construction {
        name: "first_word",
        limit: 0.1,
        phrases: &["^ it|its|they|their|those|these|that|such|both", "^ one that", "^ each of"],
        help: "the item is the subject: \"Name of the set\", not \"Its name\"",
    },
    Construction {
        name: "gone",
        limit: 0.5,
        phrases: &["gone|begun|begin|begins|began"],
        help: "deleted, missing, started",
    },
    Construction {
        name: "is_no",
        limit: 0.7,
        phrases: &["is|are|was|has|have|had|give|gives none|no|nothing"],
        help: "is not a, has no: \"is not a valid pattern\", not \"is no pattern\"",
    },
    Construction {
        name: "those_that",
        limit: 0.1,
        phrases: &[
            "those that|of|who|which|with|in|at|whose|before|after",
            "the one|ones that|of|with|before|after",
            "that which",
            "whichever|whoever|whatever",
        ],
        help: "noun and participle: failed resources, not \"those that failed\"",
    },
    Construction {
        name: "inversion",
        limit: 0.3,
        phrases: &[". of|without *", "beside|besides|beneath|beyond", "but for"],
        help: "subject first; \"if\", \"except\", \"next to\" for \"of\", \"but for\", \"beside\"",
    },
    Construction {
        name: public_docs::PRONOUN,
        limit: 0.0,
        phrases: &[],
        help: "name the item, so that its comment can be read without the line before",
    },
    Construction {
        name: public_docs::SHORT,
        limit: 0.0,
        phrases: &[],
        help: "purpose, unit and reason in at least five words, or no comment",
    },
];

impl Construction {
    /// Lines of the places where a block has this construction.
    pub(super) fn lines_in(&self, block: &[Word]) -> Vec<usize> {
        let begins = |at: &usize| self.phrases.iter().any(|phrase| matches(phrase, block, *at));
        (0..block.len()).filter(begins).map(|at| block[at].line).collect()
    }

    /// How many places a text of so many words may have: a short text may have one, unless the
    /// limit is 0.
    pub(super) fn allowed(&self, words: usize) -> usize {
        allowed(self.limit, words)
    }
}

/// See [`Construction::allowed`].
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "words of a repository"
)]
fn allowed(limit: f64, words: usize) -> usize {
    (limit * words as f64 / 1_000.0).ceil() as usize
}

fn matches(phrase: &str, block: &[Word], at: usize) -> bool {
    let mut next = at;
    phrase.split(' ').all(|part| match part {
        "^" => block[at].before == Before::Block,
        "." => matches!(block[at].before, Before::Block | Before::Sentence),
        part => block.get(next).is_some_and(|word| {
            let follows = next == at || word.before == Before::Space;
            next += 1;
            follows && (part == "*" || part.split('|').any(|other| other == word.text))
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::blocks;

    /// Names of the constructions in a comment.
    fn found(comment: &str) -> Vec<&'static str> {
        let blocks = blocks::of_rust(&format!("// {comment}\n"));
        let has =
            |kind: &&Construction| blocks.iter().any(|block| !kind.lines_in(block).is_empty());
        CONSTRUCTIONS.iter().filter(has).map(|kind| kind.name).collect()
    }

    #[test]
    fn each_construction_is_found_in_its_example() {
        for (comment, expected) in [
            ("Checks what is listed.", "what"),
            ("The length stated in the list.", "named"),
            ("Reads the rest of it.", "of_it"),
            ("Adds it to the page.", "bare_pronoun"),
            ("The folder keeps the bytes.", "keep"),
            ("Its place in the log.", "first_word"),
            ("The file is gone.", "gone"),
            ("The text is no pattern.", "is_no"),
            ("The run repeats those that failed.", "those_that"),
            ("Reads sets. Of several sets the first.", "inversion"),
            ("Every set but for the first.", "inversion"),
        ] {
            assert_eq!(found(comment), [expected], "{comment}");
        }
    }

    #[test]
    fn plain_sentences_have_no_construction() {
        for comment in [
            "Adds the entry to the page.",
            "The listed length, in bytes: what? The name is not known.",
            "Returns the bytes of `keeps`, of which it is one.",
            "The type `those` that, and the set (it has) no name.",
        ] {
            assert!(found(comment).is_empty(), "{comment}: {:?}", found(comment));
        }
    }

    #[test]
    fn a_limit_is_rounded_up_to_whole_places() {
        assert_eq!([0, 1, 1_000, 10_000, 10_001].map(|words| allowed(0.1, words)), [0, 1, 1, 1, 2]);
        assert_eq!(allowed(0.0, 10_000), 0);
    }
}
