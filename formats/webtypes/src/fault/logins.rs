//! Texts without the logins of the URLs in them.

use std::borrow::Cow;
use std::ops::Range;
use url::Url;

/// The text of a URL without user and password, for messages and logs, also where it is not a URL:
/// then everything between its scheme and the last `@` is left out, since that may be a password.
///
/// ```
/// # use abreast_webtypes::without_login;
/// assert_eq!(without_login("https://me:hush@example.org/a@b"), "https://example.org/a@b");
/// assert_eq!(without_login("https://me:hu/sh@example.org:port/"), "https://example.org:port/");
/// ```
pub fn without_login(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return text.into();
    }
    let scheme = text.find(':').filter(|at| {
        let rest = &text[at + 1..];
        let name = text[..*at].trim_start();
        rest.starts_with(['/', '\\'])
            || name.eq_ignore_ascii_case("http")
            || name.eq_ignore_ascii_case("https")
    });
    let start = scheme.map_or(0, |at| at + 1);
    let start = text.len() - text[start..].trim_start_matches(['/', '\\']).len();
    // `http://joe:#password@host` is a valid URL with an empty port and a fragment.
    let has_empty_port = text[start..]
        .find(['/', '\\', '?', '#'])
        .is_some_and(|length| text[..start + length].ends_with(':'));
    let is_url =
        scheme.is_some() && !has_empty_port && Url::parse(text).is_ok_and(|url| url.has_host());
    let end = if is_url { text[start..].find(['/', '\\', '?', '#']) } else { None };
    let end = end.map_or(text.len(), |length| start + length);
    match text[start..end].rfind('@') {
        Some(at) => format!("{}{}", &text[..start], &text[start + at + 1..]).into(),
        None => text.into(),
    }
}

/// Schemes whose URIs have an `@` that follows no password.
const WITHOUT_PASSWORD: [&str; 28] = [
    "acct", "ark", "cid", "data", "did", "dir", "doi", "file", "geo", "handle", "hdl", "im",
    "info", "labels", "lsid", "mailto", "mid", "news", "nquads", "oai", "pres", "sip", "sips",
    "tag", "urn", "uuid", "warc", "xmpp",
];

/// Kinds of logins to remove.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Logins {
    /// Logins in addresses with `://` or a scheme of the web.
    OfUrls,
    /// Logins without a scheme too, as in `user:password@host`.
    All,
}

/// A text without the users and passwords of the URLs in it, for messages. A value in a message can be a URL wherever
/// anything else was expected, and need not be a correct one: where the end of a password is not certain, more is left
/// out than the login.
///
/// # Examples
/// ```
/// # use abreast_webtypes::without_logins;
/// assert_eq!(without_logins("`http://me:my pass@h/x` is none"), "`http://h/x` is none");
/// assert_eq!(without_logins("me:hush@h/x: not found"), "h/x: not found");
/// ```
pub fn without_logins(text: &str) -> Cow<'_, str> {
    without(text, Logins::All)
}

/// A text as from [`without_logins`], in which `user:password@host` without a scheme remains: this may be the name of a
/// file.
///
/// # Examples
/// ```
/// # use abreast_webtypes::without_logins_of_urls;
/// assert_eq!(without_logins_of_urls("a:b@c.txt of http://me:hush@h/"), "a:b@c.txt of http://h/");
/// ```
pub fn without_logins_of_urls(text: &str) -> Cow<'_, str> {
    without(text, Logins::OfUrls)
}

fn without(text: &str, which: Logins) -> Cow<'_, str> {
    if !text.contains('@') {
        return text.into();
    }
    let urls = urls(text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (number, begin) in urls.iter().copied().enumerate() {
        // Judged already, together with the previous URL.
        if begin < at {
            continue;
        }
        push_plain(&mut out, &text[at..begin], which);
        let next = urls.get(number + 1).copied().unwrap_or(text.len());
        let (range, shown) = of_url(text, begin, next);
        out.push_str(&shown);
        at = range.end;
    }
    push_plain(&mut out, &text[at..], which);
    if out == text { text.into() } else { out.into() }
}

/// Offsets of possible URLs with a scheme. A word may have several, as in `sparql:http://` and `--base=http://`.
fn urls(text: &str) -> Vec<usize> {
    let small = text.to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let begin = |mark: usize| small[..mark].trim_end_matches(is_name).len();
    let mut begins: Vec<usize> = small.match_indices("://").map(|(at, _)| begin(at)).collect();
    // URLs that lack slashes.
    for mark in ["http:", "https:"] {
        let is_value =
            |at: usize| small[at + mark.len()..].starts_with(|c: char| !c.is_whitespace());
        begins.extend(
            small.match_indices(mark).filter(|(at, _)| is_value(*at)).map(|(at, _)| begin(at)),
        );
    }
    begins.sort_unstable();
    begins.dedup();
    begins
}

/// The part of a text that is judged as one URL, and its text without the login.
fn of_url(text: &str, begin: usize, next: usize) -> (Range<usize>, Cow<'_, str>) {
    let whole = &text[begin..end_of_value(text, begin, next)];
    let word = &whole[..whole.find(char::is_whitespace).unwrap_or(whole.len())];
    let scheme = whole.find(':').map_or(0, |at| at + 1);
    let start = whole.len() - whole[scheme..].trim_start_matches(['/', '\\']).len();
    let end = whole[start..].find(['/', '\\', '?', '#']).map_or(whole.len(), |at| start + at);
    // White space within a password: a colon is before a password or a port.
    let is_quoted = text[..begin].ends_with(['`', '"', '\'', '<']);
    // A port is before further words, a number in a password before the one with the `@`.
    let is_next = || whole[word.len()..].split_whitespace().next().is_some_and(|w| w.contains('@'));
    let is_number = |text: &str| {
        text.trim_end_matches([':', ',', '.', ';', ')']).bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_password = |text: &str| is_quoted || !is_number(text) || !text.is_empty() && is_next();
    let authority = word.get(start..).filter(|authority| !authority.starts_with('['));
    let has_space = word.len() < end
        && authority
            .and_then(|text| text.split_once(':'))
            .is_some_and(|(_, text)| is_password(text));
    if let Some(at) = whole[start..end].rfind('@').filter(|at| has_space && start + at > word.len())
    {
        let shown = format!("{}{}", &whole[..start], &whole[start + at + 1..end]);
        return (begin..begin + end, shown.into());
    }
    let trimmed = word.trim_end_matches([',', '.', ';', ':', ')', '\'']);
    let parsed = Url::parse(trimmed);
    if parsed.as_ref().is_ok_and(|url| !url.has_host()) {
        // As in `file:///home`.
        return (begin..begin + word.len(), word.into());
    }
    if parsed.is_ok() || word.len() == whole.len() {
        return (begin..begin + word.len(), without_login(word));
    }
    // The password has a character that ends the host, and perhaps white space.
    match whole[start..].rfind('@') {
        Some(at) => {
            let shown = format!("{}{}", &whole[..start], &whole[start + at + 1..]);
            (begin..begin + whole.len(), shown.into())
        }
        None => (begin..begin + word.len(), word.into()),
    }
}

/// End of a value in a text: the closing quotation mark, the help of a message, or else `next`.
fn end_of_value(text: &str, begin: usize, next: usize) -> usize {
    let closing = match text[..begin].chars().next_back() {
        Some('<') => '>',
        Some(quote @ ('`' | '"' | '\'')) => quote,
        // The help of a message, or a tag of HTML.
        _ => {
            let ends = ["\n  ", "</"].map(|end| text[begin..next].find(end));
            return ends.into_iter().flatten().min().map_or(next, |at| begin + at);
        }
    };
    // A quotation mark within a password is followed by another character.
    let closes = |at: &usize| {
        let behind = text[at + closing.len_utf8()..].chars().next();
        behind.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '@' | '%' | ':'))
    };
    // A quotation mark behind the next URL closes another value.
    let mut marks = text[begin..next].match_indices(closing).map(|(at, _)| begin + at);
    marks.find(closes).unwrap_or(next)
}

/// Adds text between two URLs with a scheme. Each character is judged once.
fn push_plain(out: &mut String, text: &str, which: Logins) {
    if which == Logins::OfUrls || !text.contains('@') {
        return out.push_str(text);
    }
    let mut at = 0;
    // The value behind the last boundary, and the one in quotation marks, whose password may have white space.
    let (mut word, mut quoted) = (Candidate::at(0), None);
    // Marks up to here were judged.
    let mut judged = 0;
    for (place, c) in text.char_indices().filter(|(_, c)| c.is_whitespace() || c.is_ascii()) {
        if place < judged && c == '@' || place < at {
            continue;
        }
        if is_boundary(c) {
            word = Candidate::at(place + c.len_utf8());
            if matches!(c, '`' | '"' | '\'') {
                quoted = Some(Candidate::at(place + 1));
            } else if let Some(quoted) = &mut quoted {
                quoted.add(text, place, c);
            }
            continue;
        }
        if c != '@' {
            word.add(text, place, c);
            if let Some(quoted) = &mut quoted {
                quoted.add(text, place, c);
            }
            continue;
        }
        let begin = quoted.as_ref().filter(|quoted| quoted.is_login).map(|quoted| quoted.begin);
        let Some(begin) = begin.or(word.is_login.then_some(word.begin)) else { continue };
        let rest = &text[place + 1..];
        let length = rest.find(|c: char| is_boundary(c) || "/?#".contains(c)).unwrap_or(rest.len());
        // The last `@` is before the host.
        let end = rest[..length].rfind('@').map_or(place + 1, |last| place + 1 + last + 1);
        judged = place + 1 + length;
        if text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '[') {
            out.push_str(&text[at..begin]);
            at = end;
            (word, quoted) = (Candidate::at(end), None);
        }
    }
    out.push_str(&text[at..]);
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '<' | '>' | '(' | '[' | '{' | '=' | ',')
}

/// A value that may begin with a login, as far as it was read.
struct Candidate {
    begin: usize,
    /// The colon behind the user was read.
    has_user: bool,
    /// A user, and the begin of a password.
    is_login: bool,
}

impl Candidate {
    const fn at(begin: usize) -> Self {
        Self { begin, has_user: false, is_login: false }
    }

    /// Reads the next character, except `@`.
    fn add(&mut self, text: &str, place: usize, c: char) {
        match c {
            '/' | '\\' if place == self.begin => self.begin += 1,
            // Not in a login without a scheme: this is a path.
            '/' | '?' | '#' if self.has_user => self.is_login = false,
            ':' if !self.has_user => {
                self.has_user = true;
                self.is_login = is_user(&text[self.begin..place])
                    && text[place + 1..].starts_with(|c: char| {
                        !c.is_whitespace() && !matches!(c, ':' | '/' | '\\' | '@')
                    });
            }
            _ => {}
        }
    }
}

fn is_user(text: &str) -> bool {
    let is_of_user = |c: char| c.is_alphanumeric() || "+-._~%!$&*@".contains(c);
    let is_scheme = WITHOUT_PASSWORD.iter().any(|scheme| text.eq_ignore_ascii_case(scheme));
    !text.is_empty() && !is_scheme && text.chars().all(is_of_user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_text_keeps_its_login() {
        for text in [
            "https://me:hush@h/",
            "HTTPS://me:hush@h/",
            "https://me:hush@h:99999/",
            "https://me:hu/sh@h:x/",
            "https://me:hu#sh@h:x/",
            "https://me:hu?sh@h:x/",
            "https://me:hush@@h/",
            "https://me:hush@h /a b",
            "http:/me:hush@h/",
            "http:me:hush@h/",
            "http:\\\\me:hush@h",
            " https://me:hush@h:x",
            "me:hush@h/",
            "me:hush@h",
            "//me:hush@h/",
            "ftp://me:hush@h/",
            "https://me:hush@",
        ] {
            let shown = without_login(text);
            assert!(!shown.contains("hu") && !shown.contains("sh"), "{text}: {shown}");
        }
        for text in ["https://h/a@b", "https://h/?q=a@b#c@d", "https://h/", "papers", ""] {
            assert_eq!(without_login(text), text);
        }
    }

    #[test]
    fn texts_without_a_login_remain() {
        for text in [
            "http://h:80 refused me@example.org",
            "http://h:80: refused, ask me@example.org",
            "cannot reach https://h: 401 for me@example.org",
            "http://[::1]:80 me@h",
            "<td>http://h:80</td><td>a@b</td>",
            "oai:example.org:a@b is entry 3 already",
            "news:abc@x",
            "a@b: c@d",
            "key:@context",
        ] {
            assert_eq!(without_logins(text), text);
        }
    }

    #[test]
    fn long_texts_take_no_longer_for_each_character() {
        for part in
            ["@", "a:b@", "a:b@ ", "a:@@", "http://a:b@c ", "`a:b@", "'a b@", "http:", "=/:@"]
        {
            let text = part.repeat((1 << 20) / part.len());
            assert!(without_logins(&text).len() <= text.len());
            assert!(without_login(&text).len() <= text.len());
        }
    }

    #[test]
    fn logins_of_urls_are_left_out_of_texts() {
        for (text, shown) in [
            ("`listen`: `http://me:hush@h:x/` is none", "`listen`: `http://h:x/` is none"),
            ("'http://me:hu/sh@h:x/' and http://a:b@h/", "'http://h:x/' and http://h/"),
            ("http:/me:hush@h:x/", "http:/h:x/"),
            (
                "--base=ftp://me:hush@h/, sparql:http://me:hush@h/q",
                "--base=ftp://h/, sparql:http://h/q",
            ),
            ("{\"message\":\"http://me:hush@h/\"}", "{\"message\":\"http://h/\"}"),
            // White space in a password.
            ("http://joe:my pass@h/x", "http://h/x"),
            ("`http://joe:my pass@h/x` is none", "`http://h/x` is none"),
            ("'http://joe:my pass@h:x/y' is none", "'http://h:x/y' is none"),
            ("fetch http://joe:my pass@h/x?y again", "fetch http://h/x?y again"),
            ("`http://joe:my p/ss@h/x` is none", "`http://h/x` is none"),
            ("`http://joe:12 34@h/x`", "`http://h/x`"),
            ("`http://joe:p@ss word@h/x`", "`http://h/x`"),
            ("http://joe:a b@h/x and https://joe:c d@h/", "http://h/x and https://h/"),
            ("http://joe:a\nb@h/x", "http://h/x"),
            ("`http:joe:my pass@h` is none", "`http:h` is none"),
            // Quotation marks in a password.
            ("http://joe:a\"b@h/x", "http://h/x"),
            ("`http://joe:a`b@h/x` is none", "`http://h/x` is none"),
            ("<http://joe:hush@h/>; rel=\"up\"", "<http://h/>; rel=\"up\""),
            // No slashes, no scheme.
            ("http:user:hush@h", "http:h"),
            ("HTTPS:user:hush@h/x is none", "HTTPS:h/x is none"),
            ("joe:hush@h/x", "h/x"),
            ("`joe:hush@h/x` is none", "`h/x` is none"),
            ("`joe:my pass@h/x` is none", "`h/x` is none"),
            ("joe:hu@sh@h/x, joe:hush@h", "h/x, h"),
            ("abreast: joe:hush@h: not found", "abreast: h: not found"),
            ("`//joe:hush@h/x`", "`//h/x`"),
            ("--server=joe:hush@h", "--server=h"),
            ("`me@corp.org:hush@h/x` is none", "`h/x` is none"),
            ("http://joe:#hush@h is none", "http://h is none"),
            ("http://joe:12 hush@h/x is none", "http://h/x is none"),
        ] {
            assert_eq!(without_logins(text), shown, "{text}");
        }
    }

    #[test]
    fn texts_without_logins_stay_as_they_are() {
        for text in [
            "me@example.org cannot",
            "see https://h/@me and https://h/?a=b@c",
            "see https://h/ and write to me@example.org",
            "`http://h:x/` is none\n  help: ask me@example.org",
            "http://h:80/ refused me@example.org",
            "xmpp:me@example.org mailto:me@example.org urn:x:a@b tag:me@example.org,2026:x",
            "line 3: me@example.org",
            "papers: `localhost:8080/a@b` is none",
            "@prefix ex: <http://h/> . \"a\"@en",
            "file:///home/me@work of me@example.org",
            "é @ nothing",
            "nothing",
        ] {
            assert_eq!(without_logins(text), text);
        }
        assert_eq!(without_logins_of_urls("created a:b@c.txt"), "created a:b@c.txt");
    }

    proptest! {
        #[test]
        fn no_password_with_a_scheme_remains(
            before in "[a-z `'(=]{0,6}",
            scheme in "(https?:/{0,2}|ftp://|HTTP:\\\\\\\\)",
            password in "[a-zA-Z0-9 :%é\"'<>/?#@-]{0,8}SECRET[a-zA-Z0-9 ]{0,4}",
        ) {
            // Of `http://a:b@c/d@e`, `c` is the host.
            prop_assume!(!(password.contains('@') && password.contains(['/', '?', '#'])));
            let text = format!("{before}`{scheme}joe:x-{password}@h.example/x`");
            let shown = without_logins(&text).into_owned();
            prop_assert!(!shown.contains("SECRET"), "{text}: {shown}");
        }

        #[test]
        fn any_text_can_be_shown(text: String, more in "[a:/@ h\"`é\n]{0,30}") {
            let _ = without_logins(&text);
            let _ = without_logins(&more);
            let _ = without_logins_of_urls(&more);
        }
    }
}
