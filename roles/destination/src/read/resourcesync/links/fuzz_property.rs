//! Properties of everything that names ResourceSync documents: for fuzzing and for the tests of its
//! seeds.

use super::{in_header, in_html, is_html};
use abreast_webtypes::{Link, robots_sitemaps};

/// Any bytes as a Link header, as a page and as a robots.txt. Found links occur in the text, and a
/// link at the start of the text is found first, for any continuation.
///
/// # Panics
/// A property does not hold.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    is_html(bytes);
    for found in in_header(&text) {
        assert!(text.contains(&found));
    }
    for found in robots_sitemaps(bytes) {
        assert!(text.contains(&found) && !found.contains('\n'));
    }
    let found = in_html(bytes);
    for found in &found {
        assert!(text.contains(found) || text.contains('&'));
    }
    let mut page = b"<link rel=resourcesync href='/first'>".to_vec();
    page.extend_from_slice(bytes);
    let behind = in_html(&page);
    assert_eq!(behind.first().map(String::as_str), Some("/first"));
    // The number of tags is limited.
    assert!(found.starts_with(&behind[1..]));

    let mut header = String::new();
    let param = ("title".to_owned(), text.clone().into_owned());
    let link =
        Link { target: "/first".to_owned(), rel: "resourcesync".to_owned(), params: vec![param] };
    abreast_webtypes::write_link(&mut header, &link);
    header.push_str(", ");
    header.push_str(&text);
    if abreast_webtypes::parse_link_header(&header).is_ok() {
        assert_eq!(in_header(&header).first().map(String::as_str), Some("/first"), "{header}");
    }
}
