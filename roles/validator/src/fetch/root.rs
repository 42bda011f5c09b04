//! Detection of the root element of an XML document.

use abreast_webtypes::xml::{Ns, Reader, Token};

/// Root element of an XML document that may be truncated: whether its namespace is one of these,
/// and its local name.
pub(crate) fn root_of(begin: &[u8], namespace: &'static [&'static str]) -> Option<(bool, String)> {
    let mut xml = Reader::with_limit(namespace, u64::MAX);
    xml.guess_encoding();
    xml.push(begin);
    loop {
        match xml.next() {
            Ok(Token::Start(root)) => {
                return Some((root.ns() == Ns::known(0), root.local().to_owned()));
            }
            Ok(Token::Markup(_) | Token::Text(_)) => {}
            _ => return None,
        }
    }
}
