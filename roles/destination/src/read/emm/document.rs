//! One Entry Point or page, read completely, within limits.

use crate::report::error::{Error, ExitCode};
use crate::request::diagnostics::Remark;
use crate::request::pieces::{Answered, Asked, Pieces, read_unknown};
use crate::request::requests::Requests;
use abreast_emm::{Action, Document, Item, ReadError};
use abreast_webtypes::{MAX_URI_LENGTH, Timestamp};
use std::sync::Arc;

/// Longest document.
const BYTES_MAX: usize = 64 << 20;

/// The types of documents, and what servers send in their place.
const ACCEPT: &str = "application/activity+json, application/ld+json, application/json;q=0.9";

/// A document and its address.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    /// Shared, because a page may be large and is retained for comparisons with other pages.
    pub(super) document: Arc<Document>,
    /// The requested URL.
    pub(super) url: String,
    pub(super) answered: Answered,
}

/// What to do with an object that is not a collection.
const ENTRY_POINT: &str = "give the address of the Entry Point of a change feed, an OrderedCollection of Activity Streams";

/// Reads a document.
pub(super) fn read(requests: &Requests<'_>, url: &str) -> Result<Read, Error> {
    requests.check_cancelled()?;
    let mut bytes = Whole { url, bytes: Vec::new() };
    let asked = Asked { accept: Some(ACCEPT), ..Asked::whole(url, BYTES_MAX as u64) };
    let answered = read_unknown(requests, &asked, &mut bytes)?;
    let document = Document::from_slice(&bytes.bytes, &answered.url).map_err(|error| {
        let (code, exit) = match error {
            ReadError::Limit(_) => ("limit.items", ExitCode::Limit),
            ReadError::Type(_) => ("emm.type", ExitCode::SourceInvalid),
            ReadError::Shape(_) => ("emm.shape", ExitCode::SourceInvalid),
            _ => ("emm.json", ExitCode::SourceInvalid),
        };
        let help = matches!(error, ReadError::Type(_)).then_some(ENTRY_POINT);
        let error = Error::new(code, exit, format!("cannot use {url}: {error}"));
        match help {
            Some(help) => error.with_help(help),
            None => error,
        }
    })?;
    // JSON is usually one line, so its number is not useful.
    let note = |code, message: &str, count| {
        let message = message.to_owned();
        requests.diagnostics.note(url, Remark { code, line: 0, message, count });
    };
    if let Some(context) = &document.unknown_context {
        note(
            "emm.context",
            &format!("its context is {context}, and not that of Activity Streams"),
            1,
        );
    }
    if let Some(kind) = &document.other_letters {
        let message = format!("the type `{kind}` is not in the letters of the specification");
        let remark = Remark { code: "emm.type-case", line: 0, message, count: 1 };
        requests.diagnostics.note_form(url, remark);
    }
    if document.unreadable > 0 {
        note(
            "emm.item",
            "a member of `orderedItems` that is not an activity is left out",
            document.unreadable,
        );
    }
    if document.overlong > 0 {
        let message = format!("a URL of more than {MAX_URI_LENGTH} bytes is left out");
        note("emm.uri", &message, document.overlong);
    }
    let mut others = document.items.iter().filter(|item| !is_understood(item));
    if let Some(first) = others.next() {
        let count = 1 + others.count() as u64;
        let object = first.objects.first().map_or("nothing", |object| object.id.as_str());
        let what = match document.unknown_type.as_deref() {
            _ if first.action == Action::Move => "a `Move` without `target`".to_owned(),
            None | Some("") => "an activity without `type`".to_owned(),
            Some(name) => format!("an activity of the unknown type `{name}`"),
        };
        let message = format!("{what} is left out; it is about {object}");
        note("emm.activity", &message, count);
    }
    Ok(Read { document: Arc::new(document), url: url.to_owned(), answered })
}

fn is_understood(item: &Item) -> bool {
    match item.action {
        Action::Other => false,
        Action::Move => !item.target().is_empty(),
        _ => true,
    }
}

struct Whole<'u> {
    url: &'u str,
    bytes: Vec<u8>,
}

impl Pieces for Whole<'_> {
    fn begin(&mut self, _: &Answered) -> Result<(), Error> {
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        if self.bytes.len() + bytes.len() > BYTES_MAX {
            let message = format!("{} is larger than {} MiB", self.url, BYTES_MAX >> 20);
            return Err(Error::new("limit.size", ExitCode::Limit, message));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(true)
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The link from a page to an older page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageLink {
    Next,
    Prev,
}

impl PageLink {
    pub(super) fn of(self, page: &Document) -> Option<&String> {
        match self {
            Self::Next => page.next.as_ref(),
            Self::Prev => page.prev.as_ref(),
        }
    }

    /// The link to a newer page.
    pub(super) const fn back(self) -> Self {
        match self {
            Self::Next => Self::Prev,
            Self::Prev => Self::Next,
        }
    }
}

/// The activities of a page, each once: some servers list one twice at times.
pub(super) fn activities(page: &Document) -> Vec<(Option<Timestamp>, Vec<&str>)> {
    let mut all: Vec<(_, Vec<_>)> = Vec::new();
    for item in &page.items {
        all.push((item.time, item.objects.iter().map(|object| object.id.as_str()).collect()));
    }
    all.dedup();
    all
}

/// A document that was read; `None` if the document was removed.
pub(super) fn if_there(read: Result<Read, Error>) -> Result<Option<Read>, Error> {
    match read {
        Err(error) if matches!(error.status(), Some(404 | 410)) => Ok(None),
        read => read.map(Some),
    }
}
