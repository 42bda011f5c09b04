//! Language tags as they are written. The parsers of the Turtle family hand them over in lower case, and end at one
//! that is none: so they are taken down before the parser reads them, and put back into its statements.

use crate::read_options::Visit;
use crate::statement::is_language_tag;
use oxrdf::{Literal, QuadRef, TermRef};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Wrong tags that are remembered, for the words about them.
const WRONG_MAX: usize = 1_000;

/// The tags of a document, in order, from its reader to its statements. A clone is the same queue: as long as what the
/// parser has read and not handed over.
#[derive(Clone, Debug, Default)]
pub(crate) struct LanguageTags(Rc<RefCell<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    /// The parser reads letters in place of all other bytes, so that a tag that is none is read as well.
    hides: bool,
    /// Of the tag in hand.
    bytes: Vec<u8>,
    /// `None` for one that the parser hands over as it is written.
    found: VecDeque<Option<Box<str>>>,
    /// Those that are none, if what follows without white space is part of them.
    wrong: Vec<WrongTag>,
}

#[derive(Debug)]
struct WrongTag {
    text: Box<str>,
    line: u64,
    /// Behind its last character.
    column: u64,
}

impl LanguageTags {
    /// With `hides` tags that are none are no errors of the parser: they are in the statements then.
    pub(crate) fn new(hides: bool) -> Self {
        Self(Rc::new(RefCell::new(Queue { hides, ..Queue::default() })))
    }

    /// Takes down a byte of a tag.
    pub(crate) fn push(&self, byte: &mut u8) {
        let mut queue = self.0.borrow_mut();
        queue.bytes.push(*byte);
        if queue.hides && !byte.is_ascii_alphabetic() {
            *byte = b'a';
        }
    }

    /// Whether the tag in hand, before a colon, may be a tag and the prefix of a name: `"x"@ené:b`.
    pub(crate) fn may_be_name(&self) -> bool {
        let queue = self.0.borrow();
        queue.hides && !queue.bytes.is_ascii()
    }

    /// Ends a tag; `place` is the line and the column behind it.
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

    /// The wrong tag at a place, if there is one.
    pub(crate) fn wrong_at(&self, line: u64, column: u64) -> Option<String> {
        let is_at = |tag: &&WrongTag| {
            let begin = tag.column.saturating_sub(tag.text.chars().count() as u64 + 1);
            tag.line == line && (begin..=tag.column).contains(&column)
        };
        self.0.borrow().wrong.iter().find(is_at).map(|tag| tag.text.to_string())
    }

    /// Visits a statement with its tag as it is written. Each literal of a document is in one statement, in its order.
    pub(crate) fn visit(&self, quad: QuadRef<'_>, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let TermRef::Literal(literal) = quad.object else { return visit(quad) };
        let Some(language) = literal.language() else { return visit(quad) };
        let mut queue = self.0.borrow_mut();
        let Some(Some(found)) = queue.found.pop_front() else {
            drop(queue);
            return visit(quad);
        };
        // What follows a tag without white space is not part of it: `"x"@en1` is a text and a number.
        let tag = if queue.hides { Some(&*found) } else { found.get(..language.len()) };
        let tag = tag.filter(|tag| queue.hides || tag.eq_ignore_ascii_case(language));
        drop(queue);
        let Some(tag) = tag else { return visit(quad) };
        let literal = Literal::new_language_tagged_literal_unchecked(literal.value(), tag);
        visit(QuadRef { object: literal.as_ref().into(), ..quad })
    }
}
