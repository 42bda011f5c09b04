//! The Link header field [rfc8288 §3].

use crate::MAX_URI_LENGTH;
use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Most bytes in all Link fields of one answer together.
pub const MAX_LINK_HEADER_LENGTH: usize = 64 * 1_024;
/// Most links that are read from one answer.
pub const MAX_LINKS: usize = 256;

/// A link with its relation and parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Target of the link: a URI reference, as written.
    pub target: String,
    /// Relation types, separated by spaces.
    pub rel: String,
    /// Other parameters in their order, with names in lower case and values without quotes.
    pub params: Vec<(String, String)>,
}

impl Link {
    /// Whether this is one of its relation types. They compare in any letter case [rfc8288 §2.1.1].
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::parse_link_header;
    ///
    /// let links = parse_link_header(r#"</list.xml>; rel="Resourcesync up""#)?;
    /// assert!(links[0].has_rel("resourcesync") && links[0].has_rel("up"));
    /// assert!(!links[0].has_rel("source"));
    /// # Ok::<(), abreast_webtypes::LinkHeaderError>(())
    /// ```
    pub fn has_rel(&self, rel: &str) -> bool {
        self.rel.split_ascii_whitespace().any(|token| token.eq_ignore_ascii_case(rel))
    }

    /// The first parameter with this name, which must be in lower case.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The context of the link, when that is not the response's own URI [rfc8288 §3.2].
    ///
    /// Such a link describes another resource: a search for the response's own links skips it.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::parse_link_header;
    ///
    /// let links = parse_link_header(r#"</notes.xml>; rel="describedby"; anchor="/scans/7.tif""#)?;
    /// assert_eq!(links[0].anchor(), Some("/scans/7.tif"));
    /// # Ok::<(), abreast_webtypes::LinkHeaderError>(())
    /// ```
    pub fn anchor(&self) -> Option<&str> {
        self.param("anchor").filter(|anchor| !anchor.is_empty())
    }
}

/// Why no links were read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkHeaderError {
    /// The field is longer than [`MAX_LINK_HEADER_LENGTH`].
    #[error("the Link header is longer than {MAX_LINK_HEADER_LENGTH} bytes")]
    TooLong,
    /// There are more links than [`MAX_LINKS`].
    #[error("the Link header has more than {MAX_LINKS} links")]
    TooMany,
}

/// Reads a field value, or several joined by `, `.
///
/// Lenient: a link that cannot be read, or whose target has the replacement character of bytes that
/// were not UTF-8, is skipped, and the other links are read. A link without `rel` is dropped, since
/// it is ignored [rfc8288 §3.3]. Parameters that RFC 8187 encodes (`title*`) are decoded from
/// UTF-8.
///
/// # Examples
/// ```
/// use abreast_webtypes::parse_link_header;
///
/// let value = "<https://repo.example/toc>; rel=contents; title*=UTF-8'de'%C3%9Cbersicht";
/// let links = parse_link_header(value)?;
/// assert_eq!(links[0].rel, "contents");
/// assert_eq!(links[0].param("title"), Some("Übersicht"));
/// # Ok::<(), abreast_webtypes::LinkHeaderError>(())
/// ```
///
/// # Errors
/// See [`LinkHeaderError`].
pub fn parse_link_header(value: &str) -> Result<Vec<Link>, LinkHeaderError> {
    if value.len() > MAX_LINK_HEADER_LENGTH {
        return Err(LinkHeaderError::TooLong);
    }
    let mut links = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Ok(links);
        }
        let (piece, after) = split_element(rest);
        rest = after;
        if let Some(link) = parse_element(piece) {
            if links.len() == MAX_LINKS {
                return Err(LinkHeaderError::TooMany);
            }
            links.push(link);
        }
    }
}

/// Reads all values of the field. Each is read by itself, so that quotes that are not closed in one do not
/// hide the next.
///
/// # Errors
/// See [`LinkHeaderError`]; the limits are for all values together.
pub fn parse_link_headers(
    values: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Vec<Link>, LinkHeaderError> {
    let (mut links, mut length) = (Vec::new(), 0);
    for value in values {
        let value = value.as_ref();
        length += value.len();
        if length > MAX_LINK_HEADER_LENGTH {
            return Err(LinkHeaderError::TooLong);
        }
        links.append(&mut parse_link_header(value)?);
        if links.len() > MAX_LINKS {
            return Err(LinkHeaderError::TooMany);
        }
    }
    Ok(links)
}

/// Appends a link as one element of a field value, without a comma.
///
/// Characters that a header cannot carry are percent-encoded in the target and left out elsewhere.
///
/// # Examples
/// ```
/// use abreast_webtypes::{Link, write_link};
///
/// let link = Link {
///     target: "https://repo.example/scans/Köln.tif".to_owned(),
///     rel: "describes".to_owned(),
///     params: vec![("type".to_owned(), "image/tiff".to_owned())],
/// };
/// let mut value = String::new();
/// write_link(&mut value, &link);
/// assert_eq!(
///     value,
///     r#"<https://repo.example/scans/K%C3%B6ln.tif>; rel="describes"; type="image/tiff""#,
/// );
/// ```
pub fn write_link(out: &mut String, link: &Link) {
    out.push('<');
    for character in link.target.chars() {
        if character.is_ascii_graphic() && !matches!(character, '<' | '>' | '"') {
            out.push(character);
        } else {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                out.push('%');
                out.push(char::from(b"0123456789ABCDEF"[usize::from(byte >> 4)]));
                out.push(char::from(b"0123456789ABCDEF"[usize::from(byte & 15)]));
            }
        }
    }
    out.push('>');
    write_param(out, "rel", &link.rel);
    for (name, value) in &link.params {
        if name.bytes().all(is_token_byte) && !name.is_empty() {
            write_param(out, name, value);
        }
    }
}

fn write_param(out: &mut String, name: &str, value: &str) {
    out.push_str("; ");
    out.push_str(name);
    out.push_str("=\"");
    for character in value.chars().filter(|character| matches!(character, ' '..='~' | '\t')) {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// Cuts at the next comma that is neither between `<` and `>` nor inside quotes.
fn split_element(text: &str) -> (&str, &str) {
    let (mut in_target, mut in_quotes, mut escaped) = (false, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_quotes => escaped = true,
            b'"' if !in_target => in_quotes = !in_quotes,
            b'<' if !in_quotes => in_target = true,
            b'>' if !in_quotes => in_target = false,
            b',' if !in_quotes && !in_target => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

/// `<target>` and its parameters; `None` when it is not one.
fn parse_element(text: &str) -> Option<Link> {
    let (target, mut rest) = text.trim_matches([' ', '\t']).strip_prefix('<')?.split_once('>')?;
    let target = target.trim_matches([' ', '\t']);
    let is_unusable =
        |character| character <= ' ' || matches!(character, '\x7f' | char::REPLACEMENT_CHARACTER);
    if target.len() > MAX_URI_LENGTH || target.contains(is_unusable) {
        return None;
    }
    let mut rel: Option<String> = None;
    let mut params = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(';')?.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() {
            break;
        }
        let (name, value, after) = parse_param(rest)?;
        rest = after;
        if name != "rel" {
            params.push((name, value));
        } else if rel.is_none() {
            // Only the first counts [rfc8288 §3.3].
            rel = Some(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    let rel = rel.filter(|rel| !rel.is_empty())?;
    for (name, value) in &mut params {
        // `rel` and `anchor` are never written so; decoded, they would mean something else.
        let is_extended =
            name.len() > 1 && name.ends_with('*') && !matches!(name.as_str(), "rel*" | "anchor*");
        if let (true, Some(decoded)) = (is_extended, decode_extended(value)) {
            name.pop();
            *value = decoded;
        }
    }
    Some(Link { target: target.to_owned(), rel, params })
}

/// Reads `name`, `name=token` or `name="quoted"`, and returns the rest of the text too.
fn parse_param(text: &str) -> Option<(String, String, &str)> {
    let end = text.bytes().position(|byte| !is_token_byte(byte)).unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    let name = text[..end].to_ascii_lowercase();
    let rest = text[end..].trim_start_matches([' ', '\t']);
    let Some(rest) = rest.strip_prefix('=') else { return Some((name, String::new(), rest)) };
    let rest = rest.trim_start_matches([' ', '\t']);
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => return Some((name, value, &quoted[at + 1..])),
                '\\' => value.push(
                    characters.next().map(|pair| pair.1).filter(|escaped| is_quotable(*escaped))?,
                ),
                character if is_quotable(character) => value.push(character),
                _ => return None,
            }
        }
        return None;
    }
    // Lenient: unquoted values may hold what only quoted ones should, for example a URI as relation
    // type.
    let end = rest.find([';', ' ', '\t', '"']).unwrap_or(rest.len());
    let value = &rest[..end];
    (!value.bytes().any(|byte| byte.is_ascii_control()))
        .then(|| (name, value.to_owned(), &rest[end..]))
}

/// A tab is allowed inside quotes, other control characters are not [rfc9110 §5.6.4].
fn is_quotable(character: char) -> bool {
    !character.is_ascii_control() || character == '\t'
}

/// `UTF-8'language'percent-encoded` [rfc8187 §3.2].
fn decode_extended(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, encoded) = rest.split_once('\'')?;
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    let decoded = percent_decode_str(encoded).decode_utf8().ok()?;
    // A field cannot carry every character, so other texts are left out.
    decoded.chars().all(is_quotable).then(|| decoded.into_owned())
}

/// tchar [rfc9110 §5.6.2]
const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn links(value: &str) -> Vec<Link> {
        parse_link_header(value).unwrap()
    }

    #[test]
    fn reads_several_links_with_commas_in_them() {
        let read = links(
            "</a,b?x=1,2>; title=\"one, \\\"two\\\"\"; REL=\"up  resourcesync\" , <http://example.org/hub>;rel=hub,,\
             <c>; rel=http://example.org/rels/x;type=text/html",
        );
        assert_eq!(read.len(), 3);
        assert_eq!(read[0].target, "/a,b?x=1,2");
        assert!(
            read[0].has_rel("resourcesync")
                && read[0].has_rel("UP")
                && !read[0].has_rel("resource")
        );
        assert_eq!(read[0].param("title"), Some("one, \"two\""));
        assert!(read[1].has_rel("hub"));
        assert_eq!(
            (read[2].rel.as_str(), read[2].param("type")),
            ("http://example.org/rels/x", Some("text/html"))
        );
    }

    #[test]
    fn skips_what_cannot_be_read_and_keeps_the_rest() {
        for bad in [
            "nonsense",
            "<a>",
            "<a>; rel",
            "<a>; rel=\"\"",
            "<a b>; rel=x",
            "<a\u{fffd}>; rel=x",
            "<a>; =x; rel=up",
            "<a> rel=up",
            "<a>; rel=up; x=\"\\\u{1}\"",
        ] {
            let read = links(&format!("{bad}, <good>; rel=up"));
            assert_eq!(
                read.iter().map(|link| link.target.as_str()).collect::<Vec<_>>(),
                ["good"],
                "{bad}"
            );
        }
        assert!(links("<never closed; rel=up, <b>; rel=up").len() <= 1);
        assert!(links("<a>; rel=\"never closed, <b>; rel=up").is_empty());
    }

    #[test]
    fn an_open_quote_in_one_field_does_not_hide_the_next() {
        let values = ["<a>; rel=up; title=\"never closed", "<b>; rel=up; title=\"\u{fffd}\""];
        let read = parse_link_headers(values).unwrap();
        assert_eq!(read.iter().map(|link| link.target.as_str()).collect::<Vec<_>>(), ["b"]);
        let many = "<a>;rel=b,".repeat(MAX_LINKS / 2 + 1);
        assert_eq!(parse_link_headers([&many, &many]), Err(LinkHeaderError::TooMany));
        let long = " ".repeat(MAX_LINK_HEADER_LENGTH / 2 + 1);
        assert_eq!(parse_link_headers([&long, &long]), Err(LinkHeaderError::TooLong));
    }

    #[test]
    fn only_the_first_rel_counts() {
        assert_eq!(links("<a>; rel=up; rel=hub")[0].rel, "up");
    }

    #[test]
    fn link_with_another_context_is_marked() {
        let read = links("<a>; rel=up; anchor=\"#part\", <b>; rel=up; anchor=\"\"");
        assert_eq!(read[0].anchor(), Some("#part"));
        assert_eq!(read[1].anchor(), None);
    }

    #[test]
    fn decodes_extended_titles() {
        let read = links(
            "<a>; rel=up; title*=UTF-8'de'%c3%a4%20b; title*=latin1''%e4; title*=utf-8''a%0d%0ab",
        );
        assert_eq!(read[0].params[0], ("title".to_owned(), "ä b".to_owned()));
        assert_eq!(read[0].params[1].0, "title*");
        assert_eq!(read[0].params[2].1, "utf-8''a%0d%0ab");
    }

    #[test]
    fn too_much_is_refused() {
        assert_eq!(
            parse_link_header(&" ".repeat(MAX_LINK_HEADER_LENGTH + 1)),
            Err(LinkHeaderError::TooLong)
        );
        assert_eq!(
            parse_link_header(&"<a>;rel=b,".repeat(MAX_LINKS)).map(|links| links.len()),
            Ok(MAX_LINKS)
        );
        assert_eq!(
            parse_link_header(&"<a>;rel=b,".repeat(MAX_LINKS + 1)),
            Err(LinkHeaderError::TooMany)
        );
    }

    #[test]
    fn writes_nothing_that_breaks_out_of_the_field() {
        let mut out = String::new();
        let params = vec![
            ("title".to_owned(), "a\"\r\nX: y\\".to_owned()),
            ("b d".to_owned(), String::new()),
        ];
        write_link(
            &mut out,
            &Link { target: "/a>\r\nb é".to_owned(), rel: "up".to_owned(), params },
        );
        assert_eq!(out, "</a%3E%0D%0Ab%20%C3%A9>; rel=\"up\"; title=\"a\\\"X: y\\\\\"");
    }

    proptest! {
        #[test]
        fn written_links_read_back_equal(
            target in "[!#-;=?-~]{0,40}",
            rel in "[a-z:/,]{1,10}( [a-z\"]{1,5}){0,2}",
            params in proptest::collection::vec(("[a-df-z][a-z0-9-]{0,5}", "[ -~]{0,20}"), 0..4),
        ) {
            let params = params.into_iter().filter(|(name, _)| name != "rel").collect();
            let link = Link { target, rel, params };
            let mut out = String::new();
            write_link(&mut out, &link);
            out.push_str(", ");
            write_link(&mut out, &link);
            prop_assert_eq!(links(&out), vec![link.clone(), link]);
        }

        #[test]
        fn no_text_panics(value: String) {
            let _ = parse_link_header(&value);
        }
    }
}
