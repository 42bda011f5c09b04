//! One feed, read entry by entry, within limits.

use crate::report::error::{Error, ExitCode};
use crate::report::options::Tolerance;
use crate::request::diagnostics::Remark;
use crate::request::pieces::{Answered, Asked, Go, Pieces, Wanted, read_unknown};
use crate::request::requests::Requests;
use abreast_sdshare::{ATOM_MEDIA_TYPE, Entry, Feed, FeedKind, Limits, Parser, Step};

/// Number of bytes that are sufficient to determine the kind of a feed.
const BEGIN_BYTES: usize = 64 << 10;

/// The contents of a feed, except its entries.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) feed: Feed,
    pub(super) answered: Answered,
}

type Each<'e> = &'e mut dyn FnMut(&Feed, &Entry, &Answered) -> Result<Go, Error>;

/// Reads a feed and passes on each entry, with the preceding contents of the feed and the head of
/// the response.
pub(super) fn read_feed(requests: &Requests<'_>, url: &str, each: Each<'_>) -> Result<Read, Error> {
    read_asked(requests, &asked(url), each)
}

/// Reads a feed of any kind: completely if it lists other feeds, otherwise only its first entries.
pub(super) fn read_feed_of_feeds(
    requests: &Requests<'_>,
    url: &str,
    each: Each<'_>,
) -> Result<Read, Error> {
    let whole_if = &|begin: &[u8]| kind_in(url, begin).is_none_or(lists_feeds);
    let wanted = Wanted::Begin { bytes: BEGIN_BYTES, whole_if };
    read_asked(requests, &Asked { wanted, ..asked(url) }, each)
}

/// Whether feeds of this kind list other feeds.
pub(super) const fn lists_feeds(kind: FeedKind) -> bool {
    matches!(kind, FeedKind::Overview | FeedKind::Collection)
}

/// The kind of a feed, if its first bytes show that.
fn kind_in(url: &str, begin: &[u8]) -> Option<FeedKind> {
    let (mut parser, mut entry) = (Parser::new(url, Limits::default()), Entry::default());
    parser.guess_encoding();
    parser.feed(begin);
    while matches!(parser.next(&mut entry), Ok(Step::Entry)) {
        if let Some(kind) = entry.kind() {
            return Some(kind);
        }
    }
    None
}

fn asked(url: &str) -> Asked<'_> {
    Asked { accept: Some(ATOM_MEDIA_TYPE), ..Asked::whole(url, Limits::default().bytes) }
}

fn read_asked(requests: &Requests<'_>, asked: &Asked<'_>, each: Each<'_>) -> Result<Read, Error> {
    let url = asked.url;
    let parser = Parser::new(url, Limits::default());
    let (answered, entry) = (Answered::default(), Entry::default());
    let mut reading = Reading { url, requests, parser, answered, entry, each };
    let answered = read_unknown(requests, asked, &mut reading)?;
    reading.note_findings()?;
    Ok(Read { feed: reading.parser.into_parts().0, answered })
}

struct Reading<'r, 'a> {
    url: &'r str,
    requests: &'r Requests<'a>,
    parser: Parser,
    answered: Answered,
    entry: Entry,
    each: Each<'r>,
}

impl Pieces for Reading<'_, '_> {
    fn begin(&mut self, answered: &Answered) -> Result<(), Error> {
        self.parser = Parser::new(&*answered.url, Limits::default());
        self.parser.use_charset(answered.media_type.as_deref().unwrap_or_default());
        self.answered.clone_from(answered);
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        self.parser.feed(bytes);
        self.drain()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.parser.finish();
        self.drain().map(drop)
    }
}

impl Reading<'_, '_> {
    fn drain(&mut self) -> Result<bool, Error> {
        loop {
            let step = self.parser.next(&mut self.entry).map_err(|fault| {
                let exit = match fault.code() {
                    "sdshare.limit" | "xml.size" => ExitCode::Limit,
                    _ => ExitCode::SourceInvalid,
                };
                Error::new(fault.code(), exit, format!("cannot read {}\n  {fault}", self.url))
            })?;
            match step {
                Step::NeedInput | Step::End => return Ok(true),
                Step::Entry => {
                    self.requests.check_cancelled()?;
                    if (self.each)(self.parser.head(), &self.entry, &self.answered)? == Go::Enough {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Reports deviations from SDShare and Atom; with `--strict` the first is an error.
    fn note_findings(&self) -> Result<(), Error> {
        let diagnostics = &self.requests.diagnostics;
        for finding in self.parser.findings() {
            if diagnostics.tolerance == Tolerance::Strict {
                let message =
                    format!("cannot use {}: line {}: {}", self.url, finding.line, finding.message);
                return Err(Error::new(finding.code, ExitCode::SourceInvalid, message)
                    .with_help("without `--strict` it is read"));
            }
            let (code, line) = (finding.code, finding.line);
            let (message, count) = (finding.message.clone(), self.parser.count_of(code));
            diagnostics.note(self.url, Remark { code, line, message, count });
        }
        Ok(())
    }
}
