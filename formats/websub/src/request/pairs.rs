//! Names and values of a form or a query, as bytes, since a secret need not be text.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};
use std::borrow::Cow;

/// Characters written unchanged: letters, digits and the unreserved marks [rfc3986 §2.3].
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Names and values in their order, decoded; `+` is a blank.
pub(crate) fn pairs(form: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = match memchr::memchr(b'=', pair) {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &[][..]),
        };
        (decoded(name), decoded(value))
    })
}

fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'+', b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let blanks: Vec<u8> =
        text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Cow::Owned(percent_decode(&blanks).collect())
}

/// Appends `name=value`, with an `&` before it unless it is the first or one is there.
pub(crate) fn push(out: &mut String, name: &str, value: &str) {
    begin(out, name);
    out.extend(utf8_percent_encode(value, ENCODED));
}

/// The same with bytes.
pub(crate) fn push_bytes(out: &mut String, name: &str, value: &[u8]) {
    begin(out, name);
    out.extend(percent_encoding::percent_encode(value, ENCODED));
}

fn begin(out: &mut String, name: &str) {
    if !out.is_empty() && !out.ends_with(['?', '&']) {
        out.push('&');
    }
    out.push_str(name);
    out.push('=');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_are_decoded() {
        let read: Vec<_> = pairs(b"&a=1+2&&b%3d=%26%zz&c&=x=y").collect();
        let expected: [(&[u8], &[u8]); 4] =
            [(b"a", b"1 2"), (b"b=", b"&%zz"), (b"c", b""), (b"", b"x=y")];
        assert_eq!(
            read.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(),
            expected
        );
    }

    proptest! {
        #[test]
        fn written_pairs_read_back(values in proptest::collection::vec(any::<Vec<u8>>(), 1..5)) {
            let mut out = String::new();
            for value in &values {
                push_bytes(&mut out, "n", value);
            }
            let read: Vec<Vec<u8>> = pairs(out.as_bytes()).map(|(_, value)| value.into_owned()).collect();
            prop_assert_eq!(read, values);
        }
    }
}
