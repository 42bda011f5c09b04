//! Nesting depth of the elements in a stream, computed from its bytes. XML that is not well-formed
//! may be counted wrongly: the parser then ends the stream.

/// Counts elements.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    at: At,
    /// The byte before the last.
    before: u8,
    last: u8,
    open: usize,
    deepest: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum At {
    #[default]
    Text,
    /// After `<`.
    Open,
    /// After `<!`.
    Declared,
    Start,
    /// In an attribute's value, which ends with this quote.
    Value(u8),
    End,
    Instruction,
    /// In a section of characters, which ends with `]]>`.
    Section,
}

impl Depth {
    /// Processes more bytes, and returns the number of elements that start there.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut begun = 0;
        for &byte in bytes {
            self.at = match (self.at, byte) {
                (At::Text, b'<') => At::Open,
                (At::Open, b'/') => At::End,
                (At::Open, b'?') => At::Instruction,
                (At::Open, b'!') => At::Declared,
                (At::Open, _) => {
                    begun += 1;
                    self.open += 1;
                    self.deepest = self.deepest.max(self.open);
                    At::Start
                }
                (At::Declared, b'[') => At::Section,
                (At::Declared, _) => At::Instruction,
                (At::Start, b'"' | b'\'') => At::Value(byte),
                (At::Start, b'>') => {
                    if self.last == b'/' {
                        self.open = self.open.saturating_sub(1);
                    }
                    At::Text
                }
                (At::Value(quote), _) if quote == byte => At::Start,
                (At::End, b'>') => {
                    self.open = self.open.saturating_sub(1);
                    At::Text
                }
                (At::Instruction, b'>') => At::Text,
                (At::Section, b'>') if (self.before, self.last) == (b']', b']') => At::Text,
                (at, _) => at,
            };
            (self.before, self.last) = (self.last, byte);
        }
        begun
    }

    /// The deepest nesting so far.
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_counted_however_they_are_cut() {
        for (text, elements, deepest) in [
            ("", 0, 0),
            ("<?xml version='1.0'?><a>", 1, 1),
            ("<a><b/><b /><b></b></a><c/>", 5, 2),
            ("<a b='>/' c=\"'/>\"><d>/></d></a>", 2, 2),
            ("<a><![CDATA[<b><b><b>]]]></a><![CDATA[>]]><c><d/></c>", 3, 2),
            ("<a><b><c><d>", 4, 4),
        ] {
            let mut whole = Depth::default();
            assert_eq!(whole.feed(text.as_bytes()), elements, "{text}");
            assert_eq!(whole.deepest(), deepest, "{text}");
            let mut cut = Depth::default();
            let begun: usize = text.bytes().map(|byte| cut.feed(&[byte])).sum();
            assert_eq!((begun, cut.deepest()), (elements, deepest), "{text}");
        }
    }
}
