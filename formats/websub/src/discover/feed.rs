//! Discovery in feeds: `atom:link` of a feed or channel, not of its entries [websub §4].

use super::links::{DiscoverError, HubLinks};
use abreast_webtypes::xml::{Ns, Reader, Token};

const NAMESPACES: &[&str] = &["http://www.w3.org/2005/Atom"];
const ATOM: Ns = Ns::known(0);

/// The links of a feed: children of its root, or of `channel`.
pub(super) fn links(base: &str, body: &[u8]) -> Result<HubLinks, DiscoverError> {
    let mut found = HubLinks::default();
    let mut reader = Reader::new(NAMESPACES);
    reader.push(body);
    reader.finish();
    // The depth inside which links count: 1 in the root, 2 in a channel.
    let mut depth = 0_usize;
    let mut channel = false;
    loop {
        match reader.next() {
            Ok(Token::Start(element)) => {
                depth += 1;
                channel = if depth == 2 { element.local() == "channel" } else { channel };
                let is_of_feed = depth == 2 || (depth == 3 && channel);
                if is_of_feed && element.ns() == ATOM && element.local() == "link" {
                    let (rel, href) = (element.attribute("rel"), element.attribute("href"));
                    if let (Some(rel), Some(href)) = (rel, href) {
                        found.add(base, &rel, &href)?;
                    }
                }
            }
            Ok(Token::End) => depth -= 1,
            Ok(Token::Text(_) | Token::Markup(_)) => {}
            // Lenient: a feed that is truncated or broken later has its links before that.
            Ok(Token::NeedInput | Token::Done) | Err(_) => return Ok(found),
        }
    }
}
