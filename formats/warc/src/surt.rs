//! SURT: the sort key of a URI in archive indexes, with its host reversed and one spelling for
//! many.

use abreast_webtypes::decode_segment;
use std::borrow::Cow;

/// The key of a URI, as the indexes of replay programs sort by it: scheme, user and fragment left
/// out, host reversed and without `www`, default ports left out, escapes undone where nothing is
/// lost, all in lower case, dot segments and double slashes resolved, query parameters in order.
///
/// Session identifiers are not removed, so a URI is not found under its spelling without an
/// identifier.
///
/// ```
/// assert_eq!(abreast_warc::surt("https://www.Example.org:443/a//B/?b=2&a=1#c"), "org,example)/a/b?a=1&b=2");
/// ```
pub fn surt(uri: &str) -> String {
    let without_fragment = uri.split('#').next().unwrap_or_default();
    let Some((scheme, rest)) = without_fragment.split_once("://") else {
        return String::from_utf8_lossy(&visible(uri.as_bytes())).into_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (path, query) =
        rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));

    let authority = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (authority.as_str(), ""),
    };
    let mut key = Vec::with_capacity(uri.len());
    write_host(host, &mut key);
    let default = match scheme.to_ascii_lowercase().as_str() {
        "http" => "80",
        "https" => "443",
        _ => "",
    };
    if !port.is_empty() && port != default {
        key.push(b':');
        key.extend_from_slice(port.as_bytes());
    }
    key.push(b')');
    write_path(&unescape(path), &mut key);
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        key.push(b'?');
        let query = lower(escape(&unescape(query)));
        let mut parameters: Vec<(&[u8], Option<&[u8]>)> = query
            .split(|byte| *byte == b'&')
            .map(|parameter| match parameter.iter().position(|byte| *byte == b'=') {
                Some(at) => (&parameter[..at], Some(&parameter[at + 1..])),
                None => (parameter, None),
            })
            .collect();
        parameters.sort_unstable();
        for (number, (name, value)) in parameters.into_iter().enumerate() {
            if number > 0 {
                key.push(b'&');
            }
            key.extend_from_slice(name);
            if let Some(value) = value {
                key.push(b'=');
                key.extend_from_slice(value);
            }
        }
    }
    // The escaped key has ASCII characters only.
    String::from_utf8(key)
        .unwrap_or_else(|key| String::from_utf8_lossy(key.as_bytes()).into_owned())
}

fn write_host(host: &str, key: &mut Vec<u8>) {
    if let Some(address) = host.strip_prefix('[') {
        key.extend_from_slice(&visible(address.trim_end_matches(']').as_bytes()));
        return;
    }
    let host = match host.split_once('.') {
        Some((first, rest))
            if first.strip_prefix("www").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())) =>
        {
            rest
        }
        _ => host,
    };
    for (number, label) in host.trim_matches('.').rsplit('.').enumerate() {
        if number > 0 {
            key.push(b',');
        }
        escape_into(label.as_bytes(), key);
    }
}

fn write_path(path: &[u8], key: &mut Vec<u8>) {
    let mut kept: Vec<&[u8]> = Vec::with_capacity(8);
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        match segment {
            b"." | b"" => {}
            b".." => {
                if kept.pop().is_none() {
                    kept.push(segment);
                }
            }
            _ => kept.push(segment),
        }
    }
    if kept.is_empty() {
        key.push(b'/');
    }
    for segment in kept {
        key.push(b'/');
        let from = key.len();
        escape_into(segment, key);
        key[from..].make_ascii_lowercase();
    }
}

/// Replaces escapes until no escape is left, since servers may escape twice.
fn unescape(text: &str) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(text.as_bytes());
    while bytes.contains(&b'%') {
        let out = decode_segment(&bytes);
        if out.len() == bytes.len() {
            break;
        }
        bytes = Cow::Owned(out);
    }
    bytes
}

/// Escapes `#`, `%` and everything except visible ASCII characters.
fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    escape_into(bytes, &mut out);
    out
}

fn escape_into(bytes: &[u8], out: &mut Vec<u8>) {
    escape_unless(bytes, out, |byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'%'));
}

/// Escapes everything except visible ASCII characters, since a key ends at a space and a line at
/// its end.
fn visible(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    escape_unless(bytes, &mut out, |byte| byte.is_ascii_graphic());
    out
}

fn escape_unless(bytes: &[u8], out: &mut Vec<u8>, stays: impl Fn(u8) -> bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if bytes.iter().all(|byte| stays(*byte)) {
        out.extend_from_slice(bytes);
        return;
    }
    for &byte in bytes {
        if stays(byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
        }
    }
}

fn lower(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.make_ascii_lowercase();
    bytes
}

#[cfg(test)]
mod tests {
    use super::surt;

    #[test]
    fn keys_are_those_of_replay_programs() {
        for (uri, key) in [
            ("http://127.0.0.1:8080/A/b.xml", "1,0,0,127:8080)/a/b.xml"),
            ("http://www.Example.org/", "org,example)/"),
            ("https://example.org:443/a%20b?b=2&a=1&c", "org,example)/a%20b?a=1&b=2&c"),
            ("http://example.org/a//b/../c/", "org,example)/a/c"),
            ("http://example.org/?", "org,example)/"),
            ("http://example.org/%C3%A9", "org,example)/%c3%a9"),
            ("http://[::1]:80/x", "::1)/x"),
            ("http://www2.ex.org/a%2520b#f", "org,ex)/a%20b"),
            ("http://ex.org:8080/", "org,ex:8080)/"),
            ("http://ex.org/a?a", "org,ex)/a?a"),
            ("http://ex.org/é", "org,ex)/%c3%a9"),
            ("http://user:p@ex.org/x", "org,ex)/x"),
            ("http://ex.org", "org,ex)/"),
            ("http://ex.org/a%3Fb", "org,ex)/a?b"),
            ("http://ex.org/a%23b", "org,ex)/a%23b"),
            ("http://ex.org/'x'", "org,ex)/'x'"),
            ("http://ex.org/a%zz%", "org,ex)/a%25zz%25"),
            ("http://ex.org/a?q=%23%25", "org,ex)/a?q=%23%25"),
            ("urn:some:id", "urn:some:id"),
            ("urn:some%20id\n", "urn:some%20id%0A"),
            ("http://[::1 ]/x", "::1%20)/x"),
        ] {
            assert_eq!(surt(uri), key, "{uri}");
        }
    }
}
