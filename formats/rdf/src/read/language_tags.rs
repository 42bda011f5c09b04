//! Language tags as they are written. The parsers of the Turtle family return tags in lower case,
//! and stop at an invalid tag. Therefore the tags are recorded before the parser reads them, and
//! put back into its statements.

use crate::notation::statement::is_language_tag;
use crate::read::options::Visit;
use oxrdf::{Literal, QuadRef, TermRef};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Most invalid tags that are remembered for messages.
const WRONG_MAX: usize = 1_000;

/// The tags of a document in order, passed from its reader to its statements. A clone is the same
/// queue. It has the tags that the parser has read and not returned yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct LanguageTags(Rc<RefCell<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    /// Whether the parser reads letters in place of other bytes, so that it accepts invalid tags.
    hides: bool,
    /// Bytes of the current tag.
    bytes: Vec<u8>,
    /// `None` for a tag that the parser returns as it is written.
    found: VecDeque<Option<Box<str>>>,
    /// Invalid tags, including any text that follows without white space.
    wrong: Vec<WrongTag>,
}

#[derive(Debug)]
struct WrongTag {
    text: Box<str>,
    line: u64,
    /// Column after the last character.
    column: u64,
}

impl LanguageTags {
    /// With `hides`, invalid tags are not errors of the parser; the statements then contain them.
    pub(crate) fn new(hides: bool) -> Self {
        Self(Rc::new(RefCell::new(Queue { hides, ..Queue::default() })))
    }

    /// Records a byte of a tag.
    pub(crate) fn push(&self, byte: &mut u8) {
        let mut queue = self.0.borrow_mut();
        queue.bytes.push(*byte);
        if queue.hides && !byte.is_ascii_alphabetic() {
            *byte = b'a';
        }
    }

    /// Whether the current tag, before a colon, may be a tag and the prefix of a name: `"x"@ené:b`.
    pub(crate) fn may_be_name(&self) -> bool {
        let queue = self.0.borrow();
        queue.hides && !queue.bytes.is_ascii()
    }

    /// Ends a tag; `place` returns the line and the column after it.
    pub(crate) fn end(&self, place: impl FnOnce() -> (u64, u64)) {
        let queue = &mut *self.0.borrow_mut();
        let tag = String::from_utf8_lossy(&queue.bytes);
        if !queue.hides && queue.wrong.len() < WRONG_MAX && !is_language_tag(&tag) {
            let (line, column) = place();
            queue.wrong.push(WrongTag { text: tag.clone().into(), line, column });
        }
        let is_handed_over = !queue.hides && !queue.bytes.iter().any(u8::is_ascii_uppercase);
        queue.found.push_back((!is_handed_over).then(|| tag.into()));
        queue.bytes.clear();
    }

    /// The invalid tag at a position, if there is one.
    pub(crate) fn wrong_at(&self, line: u64, column: u64) -> Option<String> {
        let is_at = |tag: &&WrongTag| {
            let begin = tag.column.saturating_sub(tag.text.chars().count() as u64 + 1);
            tag.line == line && (begin..=tag.column).contains(&column)
        };
        self.0.borrow().wrong.iter().find(is_at).map(|tag| tag.text.to_string())
    }

    /// Visits a statement with its tag as it is written. Each literal of a document must be in one
    /// statement, in the order of the document.
    pub(crate) fn visit(&self, quad: QuadRef<'_>, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let TermRef::Literal(literal) = quad.object else { return visit(quad) };
        let Some(language) = literal.language() else { return visit(quad) };
        let mut queue = self.0.borrow_mut();
        let Some(Some(found)) = queue.found.pop_front() else {
            drop(queue);
            return visit(quad);
        };
        // Text after a tag without white space is not part of the tag: `"x"@en1` is a literal and a
        // number.
        let tag = if queue.hides { Some(&*found) } else { found.get(..language.len()) };
        let tag = tag.filter(|tag| queue.hides || tag.eq_ignore_ascii_case(language));
        drop(queue);
        let Some(tag) = tag else { return visit(quad) };
        let literal = Literal::new_language_tagged_literal_unchecked(literal.value(), tag);
        visit(QuadRef { object: literal.as_ref().into(), ..quad })
    }
}
