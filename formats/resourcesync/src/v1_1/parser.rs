//! The parser without IO: bytes in, entries out [rs-core §7].

use super::attributes::{
    AlphaField, Fault, MAX_VALUE_LENGTH, StringPool, parse_datetime, read_alpha, read_entry_md,
};
use super::attributes::{has_control_or_less, read_head_md, read_ln};
use super::names::{KNOWN, RS, SM};
use super::tolerance::{Finding, Findings, Notes, Tolerance};
use super::{Entry, Error, Head, Root};
use abreast_webtypes::xml::{self, DEFAULT_MAX_DOCUMENT_LENGTH, Element, Ns, Token};
use abreast_webtypes::{MAX_URI_LENGTH, excerpt};

/// The most entries a Sitemap may have [rs-core §7].
pub const SPEC_MAX_ENTRIES: u64 = 50_000;

/// Links of one entry, or of the document.
const MAX_LINKS: usize = 1_000;

/// How much of a document is read before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Entries, 200,000 by default: four times what the specification allows, since publishers get
    /// it wrong.
    pub entries: u64,
    /// Bytes before decompression is anyone's concern here, 512 MiB by default.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 200_000, bytes: DEFAULT_MAX_DOCUMENT_LENGTH }
    }
}

impl Limits {
    /// Refuses documents with more entries.
    #[must_use]
    pub const fn with_entries(mut self, entries: u64) -> Self {
        self.entries = entries;
        self
    }

    /// Refuses documents with more bytes.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}

/// A step of [`Parser::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing complete is in hand: feed more, or finish.
    NeedInput,
    /// The head is complete, see [`Parser::head`]; comes once, before the first entry.
    Head,
    /// The next entry is in the `Entry` passed.
    Entry,
    /// The document is complete. Before this nothing may be concluded from what was *not* listed.
    End,
}

/// Reads a document from chunks of any size, entry by entry, in memory bounded by a chunk and an
/// entry.
///
/// ```
/// use abreast_resourcesync::v1_1::{Capability, Entry, Limits, Parser, Step};
///
/// let mut parser = Parser::new(Limits::default());
/// let mut entry = Entry::default();
/// let mut uris = Vec::new();
/// let mut chunks = [
///     "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'",
///     " xmlns:rs='http://www.openarchives.org/rs/terms/'><rs:md capability='resourcelist'",
///     " at='2026-01-03T09:00:00Z'/><url><loc>http://example.org/a</loc></url></urlset>",
/// ].into_iter();
/// loop {
///     match parser.next(&mut entry)? {
///         Step::NeedInput => match chunks.next() {
///             Some(chunk) => parser.feed(chunk.as_bytes()),
///             None => parser.finish(),
///         },
///         Step::Head => assert_eq!(parser.head().unwrap().capability, Some(Capability::ResourceList)),
///         Step::Entry => uris.push(entry.loc.clone()),
///         Step::End => break,
///     }
/// }
/// assert_eq!(uris, ["http://example.org/a"]);
/// # Ok::<(), abreast_resourcesync::v1_1::Error>(())
/// ```
pub struct Parser {
    xml: xml::Reader,
    limits: Limits,
    place: ParserState,
    head: Head,
    /// The head was reported.
    head_done: bool,
    /// The document's `rs:md` was read.
    md_read: bool,
    /// The entry being read, and whether its `loc` and `rs:md` were.
    entry: Entry,
    loc_read: bool,
    entry_md_read: bool,
    entries: u64,
    text: String,
    spare: StringPool,
    tolerance: Tolerance,
    /// Name of the entries; in a document with the wrong root not the one that the root implies.
    entry_element: &'static str,
    findings: Findings,
    notes: Notes,
    skipped: u64,
    failed: Option<Error>,
}

/// Which element we are inside of.
#[derive(Clone, Copy)]
enum ParserState {
    Outside,
    Root,
    Entry,
    Field(Field),
    /// An ignored element and its descendants; where to go when that many are closed.
    Ignored {
        open: u32,
        in_entry: bool,
    },
}

/// A child of an entry whose text matters.
#[derive(Clone, Copy)]
enum Field {
    Loc,
    Lastmod,
    Alpha(AlphaField),
}

impl Field {
    const fn code(self) -> &'static str {
        match self {
            Self::Loc => "rs.loc",
            Self::Lastmod => "rs.datetime",
            Self::Alpha(AlphaField::Size) => "rs.length",
            Self::Alpha(_) => "rs.value",
        }
    }
}

impl Parser {
    /// A parser for one document, with the usual [`Tolerance`].
    pub fn new(limits: Limits) -> Self {
        Self::with_tolerance(limits, Tolerance::Usual)
    }

    /// A parser for one document.
    pub fn with_tolerance(limits: Limits, tolerance: Tolerance) -> Self {
        Self {
            xml: xml::Reader::with_limit(KNOWN, limits.bytes),
            limits,
            place: ParserState::Outside,
            head: Head::default(),
            head_done: false,
            md_read: false,
            entry: Entry::default(),
            loc_read: false,
            entry_md_read: false,
            entries: 0,
            text: String::new(),
            spare: StringPool::default(),
            tolerance,
            entry_element: "",
            findings: Findings::default(),
            notes: Notes { lenient: tolerance == Tolerance::Lenient, ..Notes::default() },
            skipped: 0,
            failed: None,
        }
    }

    /// Takes more bytes. Call [`Parser::next`] until it returns [`Step::NeedInput`] between feeds,
    /// else they accumulate.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.xml.push(bytes);
    }

    /// Signals the end of the input.
    pub fn finish(&mut self) {
        self.xml.finish();
    }

    /// The head of the document, once [`Step::Head`] was reported.
    pub fn head(&self) -> Option<&Head> {
        self.head_done.then_some(&self.head)
    }

    pub(super) fn head_so_far(&self) -> &Head {
        &self.head
    }

    /// How many entries were reported.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Deviations from the specification that were accepted so far: one finding for each code.
    pub fn findings(&self) -> &[Finding] {
        &self.findings.0
    }

    /// How many entries were left out because they could not be understood; only with
    /// [`Tolerance::Lenient`].
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether there are more entries than a Sitemap may have, so far. They are read anyway
    /// [rs-core §7].
    pub fn over_spec_limit(&self) -> bool {
        self.entries > SPEC_MAX_ENTRIES
    }

    /// Continues to the next head, entry or end. The entry passed is cleared and its allocations
    /// are used again; its content means something only after [`Step::Entry`].
    ///
    /// # Errors
    /// By [code](Error::code); after an error the same one is returned at every later call.
    /// - `xml.*`: see [`abreast_webtypes::xml`]
    /// - `rs.root`: the root is neither `urlset` nor `sitemapindex` of Sitemap, or does not fit its
    ///   children
    /// - `rs.order`: an `rs:md` of the document behind the first entry
    /// - `rs.md`: a second `rs:md` in one place
    /// - `rs.loc`: an entry without a URI
    /// - `rs.datetime`, `rs.length`, `rs.capability`, `rs.change`, `rs.value`: an attribute or text
    ///   is wrong
    /// - `time.interval`: `completed` before `at` (read with [`Tolerance::Lenient`]), or `until`
    ///   before `from`
    /// - `rs.entries`, `rs.links`: too many
    /// - with [`Tolerance::Strict`] the code of any [`Finding`]
    pub fn next(&mut self, entry: &mut Entry) -> Result<Step, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let step = self.advance(entry);
        if let Err(error) = &step {
            self.failed = Some(error.clone());
        }
        step
    }

    fn advance(&mut self, entry: &mut Entry) -> Result<Step, Error> {
        loop {
            // Matched in place: unwrapping first would copy each token through memory, which costs
            // as much as a tag.
            match self.xml.next() {
                Err(error) => return Err(error),
                Ok(Token::NeedInput) => return Ok(Step::NeedInput),
                Ok(Token::Done) => return Ok(Step::End),
                Ok(Token::Text(text)) => {
                    let ParserState::Field(field) = self.place else { continue };
                    let (most, into) = match field {
                        Field::Loc => (MAX_URI_LENGTH, &mut self.entry.loc),
                        _ => (MAX_VALUE_LENGTH, &mut self.text),
                    };
                    into.push_str(text);
                    // White space is generous: it is cut off at the end only.
                    if into.len() > most * 2 {
                        self.leave_out(too_long(field, most), 2)?;
                    }
                }
                Ok(Token::Start(ref element)) => {
                    let place = self.place;
                    match place {
                        ParserState::Ignored { open, in_entry } => {
                            self.place = ParserState::Ignored { open: open + 1, in_entry }
                        }
                        ParserState::Entry => {
                            let (entry, spare, notes) =
                                (&mut self.entry, &mut self.spare, &mut self.notes);
                            match Self::start_in_entry(element, entry, spare, notes) {
                                Ok(Child::Loc) if self.loc_read => {
                                    self.leave_out(
                                        Fault::new("rs.loc", "a second `loc` in one entry"),
                                        2,
                                    )?;
                                }
                                Ok(Child::Loc) => {
                                    (self.loc_read, self.place) =
                                        (true, ParserState::Field(Field::Loc));
                                }
                                Ok(Child::Text(field)) => {
                                    self.text.clear();
                                    self.place = ParserState::Field(field);
                                }
                                Ok(Child::Md) if self.entry_md_read => {
                                    self.leave_out(
                                        Fault::new("rs.md", "a second `rs:md` in one entry"),
                                        2,
                                    )?;
                                }
                                Ok(child) => {
                                    self.entry_md_read |= matches!(child, Child::Md);
                                    self.place = ParserState::Ignored { open: 1, in_entry: true };
                                }
                                Err(fault) => self.leave_out(fault, 2)?,
                            }
                            self.note()?;
                        }
                        ParserState::Root => {
                            let in_sitemap = element.ns() == SM;
                            if in_sitemap && element.local() == self.entry_element {
                                if let Some(step) = self.start_entry()? {
                                    return Ok(step);
                                }
                            } else if in_sitemap && is_misplaced(element.local()) {
                                let message = format!(
                                    "`{}` inside `{}`; expected `{}`",
                                    excerpt(element.local()),
                                    self.head.root.element(),
                                    self.entry_element
                                );
                                let other = ["url", "sitemap"]
                                    .into_iter()
                                    .find(|name| *name == element.local());
                                let Some(other) = other.filter(|_| !self.head_done) else {
                                    return Err(self.xml.error("rs.root", message));
                                };
                                // Lenient: where root and entries disagree it is an index. Its
                                // lists prove themselves when they are read; taken for resources
                                // they would replace those.
                                self.notes.add("rs.root", message);
                                self.note()?;
                                (self.head.root, self.entry_element) = (Root::SitemapIndex, other);
                                if let Some(step) = self.start_entry()? {
                                    return Ok(step);
                                }
                            } else {
                                let read = match (element.ns(), element.local().as_bytes()) {
                                    (RS, b"md") if self.head_done => Err(Fault::new(
                                        "rs.order",
                                        "the `rs:md` of the document comes behind its first entry",
                                    )
                                    .with_help(
                                        "write it before all entries, so that lists can be read as they arrive",
                                    )),
                                    (RS, b"md") if self.md_read => {
                                        Err(Fault::new("rs.md", "a second `rs:md` of the document"))
                                    }
                                    (RS, b"md") => {
                                        self.md_read = true;
                                        read_head_md(&mut self.head, element, &mut self.notes)
                                    }
                                    (RS, b"ln") if self.head.links.len() == MAX_LINKS => Err(too_many_links()),
                                    (RS, b"ln") => read_ln(element, &mut self.spare, &mut self.notes)
                                        .map(|link| self.head.links.extend(link)),
                                    _ => Ok(()),
                                };
                                read.map_err(|fault| self.error(fault))?;
                                self.note()?;
                                self.place = ParserState::Ignored { open: 1, in_entry: false };
                            }
                        }
                        ParserState::Outside => {
                            self.head.root = root(element).map_err(|fault| self.error(fault))?;
                            self.entry_element = self.head.root.entry_element();
                            self.place = ParserState::Root;
                        }
                        ParserState::Field(field) => {
                            let message = format!(
                                "element `{}` where only text is due",
                                excerpt(element.local())
                            );
                            self.leave_out(Fault::new(field.code(), message), 3)?;
                        }
                    }
                }
                Ok(Token::Markup(_)) => {}
                Ok(Token::End) => match self.place {
                    ParserState::Ignored { open: 1, in_entry } => {
                        self.place = if in_entry { ParserState::Entry } else { ParserState::Root };
                    }
                    ParserState::Ignored { open, in_entry } => {
                        self.place = ParserState::Ignored { open: open - 1, in_entry }
                    }
                    ParserState::Field(field) => {
                        self.place = ParserState::Entry;
                        if let Err(fault) = self.end_field(field) {
                            self.leave_out(fault, 1)?;
                        }
                        self.note()?;
                    }
                    ParserState::Entry => {
                        if !self.loc_read {
                            self.leave_out(Fault::new("rs.loc", "an entry without `loc`"), 0)?;
                            continue;
                        }
                        self.place = ParserState::Root;
                        self.entries += 1;
                        std::mem::swap(entry, &mut self.entry);
                        return Ok(Step::Entry);
                    }
                    ParserState::Root => {
                        self.place = ParserState::Outside;
                        if !self.head_done {
                            return self.end_head();
                        }
                    }
                    ParserState::Outside => {}
                },
            }
        }
    }

    /// An entry begins; before the first one the head is complete.
    fn start_entry(&mut self) -> Result<Option<Step>, Error> {
        if self.entries + self.skipped == self.limits.entries {
            let message = format!("more than {} entries", self.limits.entries);
            return Err(self.xml.error("rs.entries", message));
        }
        self.spare.clear(&mut self.entry);
        self.entry.line = self.xml.line();
        (self.loc_read, self.entry_md_read) = (false, false);
        self.place = ParserState::Entry;
        if self.head_done { Ok(None) } else { self.end_head().map(Some) }
    }

    /// The head is complete.
    fn end_head(&mut self) -> Result<Step, Error> {
        self.head_done = true;
        if !self.md_read {
            self.notes
                .add("rs.no-md", "no `rs:md`: a plain Sitemap, read as a Resource List".to_owned());
            self.note()?;
        }
        Ok(Step::Head)
    }

    /// Leaves an entry out, when that is allowed: `open` of its elements are still open beneath the
    /// root.
    fn leave_out(&mut self, fault: Fault, open: u32) -> Result<(), Error> {
        // Too many of something is no misunderstanding.
        if self.tolerance != Tolerance::Lenient || fault.code == "rs.links" {
            return Err(self.error(fault));
        }
        let line = self.entry.line;
        self.findings
            .add("rs.entry", line, || format!("left out: {} ({})", fault.message, fault.code));
        self.skipped += 1;
        self.notes.list.clear();
        self.place = if open == 0 {
            ParserState::Root
        } else {
            ParserState::Ignored { open, in_entry: false }
        };
        Ok(())
    }

    /// Takes over what the reader of the last element noticed.
    fn note(&mut self) -> Result<(), Error> {
        if self.notes.list.is_empty() {
            return Ok(());
        }
        if self.tolerance == Tolerance::Strict {
            let (code, message) = self.notes.list.swap_remove(0);
            return Err(self
                .xml
                .error(code, message)
                .with_help("`--strict` refuses what is read otherwise"));
        }
        let line = self.xml.line();
        for (code, message) in self.notes.list.drain(..) {
            self.findings.add(code, line, || message);
        }
        Ok(())
    }

    fn start_in_entry(
        element: &Element<'_>,
        entry: &mut Entry,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<Child, Fault> {
        match (element.ns(), element.local().as_bytes()) {
            (SM, b"loc") => Ok(Child::Loc),
            (SM, b"lastmod") => Ok(Child::Text(Field::Lastmod)),
            (RS, b"md") => read_entry_md(entry, element, spare, notes).map(|()| Child::Md),
            (RS, b"ln") if entry.links.len() == MAX_LINKS => Err(too_many_links()),
            (RS, b"ln") => read_ln(element, spare, notes).map(|link| {
                entry.links.extend(link);
                Child::Other
            }),
            (RS, _) => Ok(AlphaField::of(element)
                .map_or(Child::Other, |field| Child::Text(Field::Alpha(field)))),
            _ => Ok(Child::Other),
        }
    }

    fn end_field(&mut self, field: Field) -> Result<(), Fault> {
        let most = if matches!(field, Field::Loc) { MAX_URI_LENGTH } else { MAX_VALUE_LENGTH };
        let (text, loc) = (self.text.trim_ascii(), &mut self.entry.loc);
        match field {
            Field::Loc => {
                if loc.trim_ascii().len() != loc.len() {
                    *loc = loc.trim_ascii().to_owned();
                }
                if loc.len() > most { Err(too_long(field, most)) } else { check_loc(loc) }
            }
            _ if text.len() > most => Err(too_long(field, most)),
            Field::Lastmod => {
                let read = parse_datetime("lastmod", text, &mut self.notes);
                read.map(|lastmod| self.entry.lastmod = Some(lastmod))
            }
            Field::Alpha(field) => read_alpha(&mut self.entry, field, text, &mut self.spare),
        }
    }

    fn error(&self, fault: Fault) -> Error {
        let error = self.xml.error(fault.code, fault.message);
        match fault.help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

/// The children of an entry.
enum Child {
    Loc,
    Text(Field),
    Md,
    Other,
}

fn too_long(field: Field, most: usize) -> Fault {
    Fault::new(field.code(), format!("a text is longer than {most} bytes"))
}

fn too_many_links() -> Fault {
    Fault::new("rs.links", format!("more than {MAX_LINKS} `rs:ln` in one place"))
}

/// Is it an entry of the other kind of root, or misspelt? Skipping it would make a list seem
/// shorter, and a resource that a list does not name counts as deleted.
fn is_misplaced(local: &str) -> bool {
    ["url", "sitemap"].iter().any(|name| local.eq_ignore_ascii_case(name))
}

fn root(element: &Element<'_>) -> Result<Root, Fault> {
    match (element.ns(), element.local()) {
        (SM, "urlset") => Ok(Root::UrlSet),
        (SM, "sitemapindex") => Ok(Root::SitemapIndex),
        (ns, local @ ("urlset" | "sitemapindex")) => {
            let which = if ns == Ns::NONE { "no namespace" } else { "another namespace" };
            Err(Fault::new("rs.root", format!("`{local}` is in {which}"))
                .with_help("its namespace is `http://www.sitemaps.org/schemas/sitemap/0.9`"))
        }
        (_, local) => {
            let message =
                format!("the root is `{}`; expected `urlset` or `sitemapindex`", excerpt(local));
            Err(Fault::new("rs.root", message))
        }
    }
}

/// A URI has no white space or control characters [rfc3986 §2].
///
/// Lenient: other characters that a URI must percent-encode are taken as written, since identity is
/// the exact text.
fn check_loc(loc: &str) -> Result<(), Fault> {
    if loc.is_empty() {
        return Err(Fault::new("rs.loc", "`loc` is empty"));
    }
    if has_control_or_less(loc, b' ') {
        let message =
            format!("`loc` has white space or control characters in it: \"{}\"", excerpt(loc));
        return Err(Fault::new("rs.loc", message));
    }
    Ok(())
}
