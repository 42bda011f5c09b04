//! Line endings in a request's head: requests whose lines do not end in CRLF are refused.
//!
//! A line feed without a carriage return is replaced by a byte that headers must not contain, so
//! the parser answers with 400. Otherwise two peers could disagree about the end of a line, and one
//! could see two requests where the other sees one [rfc9112 §2.2, §11.2]. Bodies are not changed;
//! their length shows where the next head starts. Nothing is checked after a body whose end only
//! the parser finds: such a request is the last on its connection.

/// Bytes of a head that are buffered to find the length of its body; the parser refuses longer
/// heads.
const MAX_HEAD: usize = 64 * 1024;

/// The expected input.
#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    /// A head, with its bytes if a body may follow.
    Head(Option<Vec<u8>>),
    Body(u64),
    Unknown,
}

/// Tracks the line endings of a connection.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    state: State,
    /// The last bytes that were read before.
    tail: [u8; 3],
}

impl Lines {
    /// Checks new bytes. Heads with other line endings are made invalid, so that the parser refuses
    /// them.
    pub(crate) fn filter(&mut self, mut read: &mut [u8]) {
        while !read.is_empty() {
            match &mut self.state {
                State::Unknown => return,
                State::Body(left) => {
                    let taken = (*left).min(read.len() as u64);
                    *left -= taken;
                    if *left == 0 {
                        self.state = State::Start;
                        self.tail = [0; 3];
                    }
                    read = &mut read[taken as usize..];
                }
                State::Start => {
                    // Methods for reading do not have a body; a request with one is refused, and
                    // the connection closed.
                    let reader = matches!(read[0], b'G' | b'H' | b'\r' | b'\n');
                    self.state = State::Head((!reader).then(Vec::new));
                }
                State::Head(_) => {
                    let taken = self.head(read);
                    read = &mut read[taken..];
                }
            }
        }
    }

    /// Consumes bytes of a head, at most to its end.
    fn head(&mut self, read: &mut [u8]) -> usize {
        let State::Head(kept) = &mut self.state else { return 0 };
        let mut end = None;
        let mut from = 0;
        while let Some(found) = memchr::memchr(b'\n', &read[from..]) {
            let at = from + found;
            let before =
                |back: usize| if at >= back { read[at - back] } else { self.tail[3 + at - back] };
            if before(1) != b'\r' {
                read[at] = 0;
            } else if before(2) == b'\n' && before(3) == b'\r' {
                end = Some(at + 1);
                break;
            }
            from = at + 1;
        }
        let taken = end.unwrap_or(read.len());
        if let Some(kept) = kept {
            kept.extend_from_slice(&read[..taken.min(MAX_HEAD.saturating_sub(kept.len()))]);
        }
        for byte in &read[taken.saturating_sub(3)..taken] {
            self.tail = [self.tail[1], self.tail[2], *byte];
        }
        if end.is_some() {
            self.tail = [0; 3];
            self.state = match kept.take().map(|head| body_after(&head)) {
                None | Some(Some(0)) => State::Start,
                Some(Some(length)) => State::Body(length),
                Some(None) => State::Unknown,
            };
        }
        taken
    }
}

/// Bytes of the body after a head; `None` if the head does not contain its length.
fn body_after(head: &[u8]) -> Option<u64> {
    let mut length = None;
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let name = &line[..colon];
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let value =
                std::str::from_utf8(&line[colon + 1..]).ok()?.trim_matches([' ', '\t', '\r']);
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let value: u64 = digits.then(|| value.parse().ok()).flatten()?;
            if length.is_some_and(|other| other != value) {
                return None;
            }
            length = Some(value);
        }
    }
    Some(length.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that pass, at once or one by one.
    fn passed(bytes: &[u8]) -> Vec<u8> {
        let mut whole = bytes.to_vec();
        Lines::default().filter(&mut whole);
        let mut lines = Lines::default();
        let single: Vec<u8> = bytes
            .iter()
            .map(|byte| {
                let mut one = [*byte];
                lines.filter(&mut one);
                one[0]
            })
            .collect();
        assert_eq!(whole, single);
        whole
    }

    #[test]
    fn a_bare_line_feed_in_a_head_is_spoilt() {
        for bad in [
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\nContent-Length: 3\r\n\r\n",
            "\nGET",
        ] {
            assert_ne!(passed(bad.as_bytes()), bad.as_bytes(), "{bad:?}");
        }
        let good = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        assert_eq!(passed(good), good);
    }

    #[test]
    fn bodies_pass_unchanged_and_the_next_head_is_checked() {
        let two = |second: &str| {
            format!("POST /a HTTP/1.1\r\ncontent-length: 4\r\n\r\na\nb\n{second}").into_bytes()
        };
        let good = two("PUT /b HTTP/1.1\r\nContent-Length: 2\r\n\r\n\n\nGET / HTTP/1.1\r\n\r\n");
        assert_eq!(passed(&good), good);
        for bad in ["GET / HTTP/1.1\nHost: x\r\n\r\n", "PUT /b HTTP/1.1\nContent-Length: 2\r\n\r\n"]
        {
            assert_ne!(passed(&two(bad)), two(bad), "{bad:?}");
        }
    }

    #[test]
    fn nothing_is_touched_after_a_body_of_unknown_length() {
        for head in [
            "Transfer-Encoding: chunked",
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: +1",
        ] {
            let bytes =
                format!("POST / HTTP/1.1\r\n{head}\r\n\r\n2\r\n\n\n\r\n0\r\n\r\n").into_bytes();
            assert_eq!(passed(&bytes), bytes);
        }
    }
}
