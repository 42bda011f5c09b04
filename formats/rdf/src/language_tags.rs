//! Language tags as they are written. The parsers of the Turtle family hand them over in lower case, and end at one
//! that is none: so they are taken down before the parser reads them, and put back into its statements.

use crate::read_options::Visit;
use oxrdf::{Literal, QuadRef, TermRef};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

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

    /// Ends a tag.
    pub(crate) fn end(&self) {
        let queue = &mut *self.0.borrow_mut();
        let is_handed_over = !queue.hides && !queue.bytes.iter().any(u8::is_ascii_uppercase);
        let tag =
            (!is_handed_over).then(|| String::from_utf8_lossy(&queue.bytes).into_owned().into());
        queue.found.push_back(tag);
        queue.bytes.clear();
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
