//! The parser without I/O, which turns bytes into entries [rs-core §7, rs-0.1 §3.1].

use super::shape::{check_deeper, is_entry, wrong_root};
use super::tolerance::Findings;
use super::values::{
    Fault, MAX_VALUE_LENGTH, StringPool, has_control_or_less, space_around_loc, trimmed,
};
use super::{
    Finding, Limits, Notes, Root, SM, SPEC_MAX_ENTRIES, Step, Tolerance, text_between_elements,
};
use abreast_webtypes::SyntaxError as Error;
use abreast_webtypes::xml::{self, Element, Ns, Token};
use abreast_webtypes::{MAX_URI_LENGTH, excerpt};

/// A version of ResourceSync: the parts of heads and entries that a plain Sitemap does not have.
///
/// [`Parser`] tracks the position in the document, reads `loc`, enforces the limits and treats
/// faults by the tolerance. A version reads its elements and their texts.
pub trait Version: Default {
    /// The head of a document.
    type Head: Clone + Default;
    /// An entry of a document.
    type Entry: Default;
    /// A child of an entry whose text matters, except `loc`.
    type Field: Copy;

    /// The namespaces in the order of their numbers; the Sitemap's is the first.
    const NAMESPACES: &'static [&'static str];
    /// Whether misprints between the elements are findings, and [`Tolerance::Lenient`] repairs tags.
    const REPAIRS: bool = false;
    /// Prefixes that need no declaration where tags are repaired.
    const PREFIXES: &'static [(&'static str, &'static str)] = &[];

    /// The root of a head.
    fn root(head: &mut Self::Head) -> &mut Root;
    /// The value of the root of a head.
    fn root_of(head: &Self::Head) -> Root;
    /// Appends a document up to its first entry.
    fn write_head(out: &mut Vec<u8>, head: &Self::Head);
    /// Appends an entry as a child of this root.
    fn write_entry(out: &mut Vec<u8>, root: Root, entry: &Self::Entry);
    /// The URI of an entry.
    fn loc(entry: &mut Self::Entry) -> &mut String;
    /// The line of an entry.
    fn line(entry: &mut Self::Entry) -> &mut u64;
    /// Clears an entry for the next one, reusing its strings.
    fn clear(entry: &mut Self::Entry, spare: &mut StringPool);
    /// The code of faults in the text of a field.
    fn code(field: Self::Field) -> &'static str;

    /// Reads the attributes of the root.
    ///
    /// # Errors
    /// It has attributes that no document of this version has.
    fn start_root(
        &mut self,
        head: &mut Self::Head,
        element: &Element<'_>,
        notes: &mut Notes,
    ) -> Result<(), Fault>;

    /// Reads a child of the root that is not an entry; `late` if entries came before.
    ///
    /// # Errors
    /// It is wrong.
    fn start_in_head(
        &mut self,
        head: &mut Self::Head,
        element: &Element<'_>,
        late: bool,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<(), Fault>;

    /// Called when the head is complete, before the first entry or the end.
    ///
    /// # Errors
    /// It is wrong.
    fn end_head(&mut self, head: &mut Self::Head, notes: &mut Notes) -> Result<(), Fault>;

    /// Resets the version's data before an entry.
    fn start_entry(&mut self);

    /// Reads a child of an entry.
    ///
    /// # Errors
    /// It is wrong.
    fn start_in_entry(
        &mut self,
        entry: &mut Self::Entry,
        element: &Element<'_>,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<Child<Self::Field>, Fault>;

    /// Reads the text of a child of an entry.
    ///
    /// # Errors
    /// It is wrong.
    fn end_field(
        &mut self,
        field: Self::Field,
        entry: &mut Self::Entry,
        text: &str,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<(), Fault>;

    /// Checks a complete entry.
    ///
    /// # Errors
    /// It is wrong as a whole.
    fn end_entry(
        &mut self,
        head: &Self::Head,
        entry: &mut Self::Entry,
        notes: &mut Notes,
    ) -> Result<(), Fault>;

    /// The message if this element around the document is wrong and can be removed.
    fn wrapper(_element: &Element<'_>) -> Option<String> {
        None
    }

    /// The element that a text between the elements should have been.
    fn element_of_text(_text: &str) -> Option<String> {
        None
    }

    /// Notes faults of the document as a whole, from its number of entries and bytes.
    fn end_document(&mut self, _entries: u64, _bytes: u64, _notes: &mut Notes) {}
}

/// A child of an entry, by the use of its text.
pub enum Child<F> {
    /// The element `loc`, which the parser reads.
    Loc,
    /// An element with text for [`Version::end_field`].
    Text(F),
    /// Read completely, or ignored, with its descendants.
    Other,
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
pub struct Parser<V: Version> {
    xml: xml::Reader,
    version: V,
    limits: Limits,
    place: Place<V::Field>,
    head: V::Head,
    /// Whether the root was read.
    root_read: bool,
    /// Whether the head was returned.
    head_done: bool,
    /// The current entry, and whether its `loc` was read.
    entry: V::Entry,
    loc_read: bool,
    entries: u64,
    bytes: u64,
    text: String,
    spare: StringPool,
    tolerance: Tolerance,
    /// Element of the entries. In a document with the wrong root it is not the element that the
    /// root implies.
    entry_element: &'static str,
    findings: Findings,
    notes: Notes,
    skipped: u64,
    failed: Option<Error>,
}

/// The element around the current position.
#[derive(Clone, Copy)]
enum Place<F> {
    Outside,
    Root,
    Entry,
    Loc,
    Field(F),
    /// An ignored element and its descendants: the number of open elements, and the place after
    /// their end.
    Ignored {
        open: u32,
        in_entry: bool,
        /// Whether the element is one of ours that has attributes only.
        is_void: bool,
    },
}

impl<V: Version> Parser<V> {
    /// A parser for one document, with the usual [`Tolerance`].
    pub fn new(limits: Limits) -> Self {
        Self::with_tolerance(limits, Tolerance::Usual)
    }

    /// A parser for one document.
    pub fn with_tolerance(limits: Limits, tolerance: Tolerance) -> Self {
        let mut xml = xml::Reader::with_limit(V::NAMESPACES, limits.bytes);
        if tolerance == Tolerance::Lenient && V::REPAIRS {
            xml = xml.repair(V::PREFIXES);
        }
        Self {
            xml,
            version: V::default(),
            limits,
            place: Place::Outside,
            head: V::Head::default(),
            root_read: false,
            head_done: false,
            entry: V::Entry::default(),
            loc_read: false,
            entries: 0,
            bytes: 0,
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

    /// Uses the parameter `charset` of the document's media type as encoding
    /// [[`xml::Reader::use_charset`]]. Call it before the first bytes.
    pub fn use_charset(&mut self, media_type: &str) {
        self.xml.use_charset(media_type);
    }

    /// Accepts documents in any encoding, guessed from their first bytes
    /// [[`xml::Reader::guess_encoding`]].
    pub fn guess_encoding(&mut self) {
        self.xml.guess_encoding();
    }

    /// Adds bytes to the input. Call [`Parser::next`] until it returns [`Step::NeedInput`] before
    /// the next call, otherwise the bytes accumulate.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.xml.push(bytes);
    }

    /// Signals the end of the input.
    pub fn finish(&mut self) {
        self.xml.finish();
    }

    /// The head of the document, after [`Step::Head`] was returned.
    pub fn head(&self) -> Option<&V::Head> {
        self.head_done.then_some(&self.head)
    }

    pub(super) fn head_so_far(&self) -> &V::Head {
        &self.head
    }

    /// Whether the document is in UTF-8, as far as it was read.
    pub fn is_utf_8(&self) -> bool {
        self.xml.is_utf_8()
    }

    /// Number of entries that were returned.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Accepted deviations from the specification so far: one finding for each code.
    pub fn findings(&self) -> &[Finding] {
        &self.findings.0
    }

    /// Number of entries that were left out because they could not be understood; only with
    /// [`Tolerance::Lenient`].
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether there are more entries so far than the specification allows. They are read
    /// nevertheless [rs-core §7].
    pub fn over_spec_limit(&self) -> bool {
        self.entries > SPEC_MAX_ENTRIES
    }

    /// Continues to the next head, entry or end. The passed entry is cleared, reusing its
    /// allocations; its content is valid only after [`Step::Entry`].
    ///
    /// # Errors
    /// By [code](Error::code); after an error the same one is returned at every later call.
    /// - `xml.*`: see [`abreast_webtypes::xml`]
    /// - `rs.root`: the root is neither `urlset` nor `sitemapindex` of Sitemap, or does not fit its
    ///   children
    /// - `rs.namespace`: a known element or attribute is in a wrong namespace
    /// - `rs.nested`: an entry is inside another element than the root
    /// - `rs.order`: an `rs:md` of the document after the first entry
    /// - `rs.md`: a second `rs:md` in one place
    /// - `rs.loc`: an entry without a URI
    /// - `rs.datetime`, `rs.length`, `rs.capability`, `rs.change`, `rs.value`: an attribute or text
    ///   is wrong
    /// - `time.interval`: `completed` before `at` (read with [`Tolerance::Lenient`]), or `until`
    ///   before `from`
    /// - `rs.entries`, `rs.links`: too many
    /// - with [`Tolerance::Strict`] the code of any [`Finding`]
    pub fn next(&mut self, entry: &mut V::Entry) -> Result<Step, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let step = self.advance(entry);
        if let Err(error) = &step {
            self.failed = Some(error.clone());
        }
        step
    }

    fn advance(&mut self, entry: &mut V::Entry) -> Result<Step, Error> {
        loop {
            // Matched in place: moving each token through memory would cost as much as parsing a
            // tag.
            match self.xml.next() {
                Err(error) => return Err(error),
                Ok(Token::NeedInput) => return Ok(Step::NeedInput),
                Ok(Token::Done) => return self.end_document(),
                Ok(Token::Text(text)) => {
                    let (most, into) = match self.place {
                        Place::Loc => (MAX_URI_LENGTH, V::loc(&mut self.entry)),
                        Place::Field(_) => (MAX_VALUE_LENGTH, &mut self.text),
                        Place::Root
                        | Place::Entry
                        | Place::Ignored { open: 1, is_void: true, .. }
                            if !text.trim_ascii().is_empty() =>
                        {
                            let text = text.trim_ascii().to_owned();
                            self.stray_text(&text)?;
                            continue;
                        }
                        _ => continue,
                    };
                    into.push_str(text);
                    // The limit does not count white space, which is removed at the end, so allow
                    // twice as much.
                    if into.len() > most * 2 {
                        self.leave_out(too_long(self.text_code(), most), 2)?;
                    }
                }
                Ok(Token::Start(ref element)) => match self.place {
                    Place::Ignored { open, in_entry, is_void } => {
                        if let Err(fault) = check_deeper(element) {
                            self.leave_out(fault, open + 1 + u32::from(in_entry))?;
                        } else {
                            self.place = Place::Ignored { open: open + 1, in_entry, is_void };
                        }
                    }
                    Place::Entry => {
                        let read = self.version.start_in_entry(
                            &mut self.entry,
                            element,
                            &mut self.spare,
                            &mut self.notes,
                        );
                        match read {
                            Ok(Child::Loc) if self.loc_read => {
                                let fault = Fault::new("rs.loc", "a second `loc` in one entry");
                                self.leave_out(fault, 2)?;
                            }
                            Ok(Child::Loc) => (self.loc_read, self.place) = (true, Place::Loc),
                            Ok(Child::Text(field)) => {
                                self.text.clear();
                                self.place = Place::Field(field);
                            }
                            Ok(Child::Other) => {
                                let is_void = is_void(element);
                                self.place = Place::Ignored { open: 1, in_entry: true, is_void };
                            }
                            Err(fault) => self.leave_out(fault, 2)?,
                        }
                        self.note()?;
                    }
                    Place::Root => {
                        let in_sitemap = element.ns() == SM;
                        if in_sitemap && element.local() == self.entry_element {
                            if let Some(step) = self.start_entry()? {
                                return Ok(step);
                            }
                        } else if in_sitemap && is_entry(element.local()) {
                            let message = format!(
                                "`{}` inside `{}`; expected `{}`",
                                excerpt(element.local()),
                                V::root(&mut self.head).element(),
                                self.entry_element
                            );
                            let other = ["url", "sitemap"]
                                .into_iter()
                                .find(|name| *name == element.local());
                            let Some(other) = other.filter(|_| !self.head_done) else {
                                return Err(self.xml.error("rs.root", message));
                            };
                            // Lenient: if root and entries disagree, the document is an index. A
                            // wrong guess is found when its lists are read; as resources, they
                            // would replace the real ones.
                            self.notes.add("rs.root", message);
                            self.note()?;
                            *V::root(&mut self.head) = Root::SitemapIndex;
                            self.entry_element = other;
                            if let Some(step) = self.start_entry()? {
                                return Ok(step);
                            }
                        } else if V::REPAIRS && in_sitemap && is_root(element.local()) {
                            let is_bare = element.is_bare();
                            if let Some(step) = self.root_in_root(is_bare)? {
                                return Ok(step);
                            }
                        } else {
                            let is_void = is_void(element);
                            let read = self.version.start_in_head(
                                &mut self.head,
                                element,
                                self.head_done,
                                &mut self.spare,
                                &mut self.notes,
                            );
                            read.map_err(|fault| self.error(fault))?;
                            self.note()?;
                            self.place = Place::Ignored { open: 1, in_entry: false, is_void };
                        }
                    }
                    Place::Outside => {
                        let is_root = element.ns() == SM && is_root(element.local());
                        let wrapper =
                            if self.notes.lenient && !is_root { V::wrapper(element) } else { None };
                        if self.root_read && is_root {
                            let message = "a second document in the same stanza";
                            return Err(self.xml.error("rs.root", message));
                        } else if self.root_read {
                            // Another element of the wrapper: ignored.
                        } else if let Some(message) = wrapper {
                            if self.xml.depth() == 1 {
                                self.notes.add("rs.wrapper", message);
                            }
                        } else {
                            let read = root(element).and_then(|root| {
                                *V::root(&mut self.head) = root;
                                self.entry_element = root.entry_element();
                                self.version.start_root(&mut self.head, element, &mut self.notes)
                            });
                            read.map_err(|fault| self.error(fault))?;
                            (self.root_read, self.place) = (true, Place::Root);
                        }
                        self.note()?;
                    }
                    Place::Loc | Place::Field(_) => {
                        let message = format!(
                            "element `{}` where only text is due",
                            excerpt(element.local())
                        );
                        self.leave_out(Fault::new(self.text_code(), message), 3)?;
                    }
                },
                Ok(Token::Markup(_)) => {}
                Ok(Token::End) => match self.place {
                    Place::Ignored { open: 1, in_entry, .. } => {
                        self.place = if in_entry { Place::Entry } else { Place::Root };
                    }
                    Place::Ignored { open, in_entry, is_void } => {
                        self.place = Place::Ignored { open: open - 1, in_entry, is_void }
                    }
                    Place::Loc | Place::Field(_) => {
                        let read = self.end_text();
                        self.place = Place::Entry;
                        if let Err(fault) = read {
                            self.leave_out(fault, 1)?;
                        }
                        self.note()?;
                    }
                    Place::Entry => {
                        let checked = if self.loc_read {
                            self.version.end_entry(&self.head, &mut self.entry, &mut self.notes)
                        } else {
                            Err(Fault::new("rs.loc", "an entry without `loc`"))
                        };
                        if let Err(fault) = checked {
                            self.leave_out(fault, 0)?;
                            continue;
                        }
                        self.note()?;
                        self.place = Place::Root;
                        self.entries += 1;
                        std::mem::swap(entry, &mut self.entry);
                        return Ok(Step::Entry);
                    }
                    Place::Root => {
                        self.place = Place::Outside;
                        if !self.head_done {
                            return self.end_head();
                        }
                    }
                    Place::Outside => {}
                },
            }
        }
    }

    /// Starts an entry; the first one completes the head.
    fn start_entry(&mut self) -> Result<Option<Step>, Error> {
        if self.entries + self.skipped >= self.limits.entries {
            let message = format!("more than {} entries", self.limits.entries);
            return Err(self.xml.error("rs.entries", message));
        }
        V::clear(&mut self.entry, &mut self.spare);
        *V::line(&mut self.entry) = self.xml.line();
        self.version.start_entry();
        self.loc_read = false;
        self.place = Place::Entry;
        if self.head_done { Ok(None) } else { self.end_head().map(Some) }
    }

    /// Ends the head, which is complete.
    fn end_head(&mut self) -> Result<Step, Error> {
        self.head_done = true;
        let read = self.version.end_head(&mut self.head, &mut self.notes);
        read.map_err(|fault| self.error(fault))?;
        self.note()?;
        Ok(Step::Head)
    }

    /// Ends the document, which is complete.
    fn end_document(&mut self) -> Result<Step, Error> {
        if !self.root_read {
            return Err(self.xml.error("rs.root", "the wrapper has no `urlset` in it"));
        }
        self.version.end_document(self.entries + self.skipped, self.bytes, &mut self.notes);
        self.note()?;
        Ok(Step::End)
    }

    /// A root element at the position of its end tag.
    ///
    /// Lenient: without attributes, it is read as an end tag whose `/` is missing. Content after it
    /// is refused, so nothing is lost.
    fn root_in_root(&mut self, is_bare: bool) -> Result<Option<Step>, Error> {
        let name = V::root(&mut self.head).element();
        let message = format!("`<{name}>` inside `{name}`; `</{name}>` ends the document");
        if self.tolerance != Tolerance::Lenient || !is_bare {
            return Err(self.xml.error("rs.root", message));
        }
        self.notes.add("xml.end-tag", message);
        self.note()?;
        self.xml.take_as_end();
        self.place = Place::Outside;
        if self.head_done { Ok(None) } else { self.end_head().map(Some) }
    }

    /// Text at a position where only elements are allowed.
    ///
    /// Lenient: the text of a single element whose `<` is missing is read as this element.
    fn stray_text(&mut self, text: &str) -> Result<(), Error> {
        let mut message = text_between_elements(text);
        if self.notes.lenient
            && matches!(self.place, Place::Root | Place::Entry)
            && let Some(element) = V::element_of_text(text).filter(|text| is_one_element::<V>(text))
        {
            let mut reader = xml::Reader::new(V::NAMESPACES).repair(V::PREFIXES);
            reader.push(element.as_bytes());
            if let Ok(Token::Start(ref element)) = reader.next() {
                let (spare, notes) = (&mut self.spare, &mut self.notes);
                let in_entry = matches!(self.place, Place::Entry);
                let read = if in_entry {
                    let read = self.version.start_in_entry(&mut self.entry, element, spare, notes);
                    read.map(drop)
                } else {
                    let late = self.head_done;
                    self.version.start_in_head(&mut self.head, element, late, spare, notes)
                };
                match read {
                    Ok(()) => message.push_str("; read as an element whose `<` is missing"),
                    Err(fault) if in_entry => return self.leave_out(fault, 1),
                    Err(fault) => return Err(self.error(fault)),
                }
            }
        }
        self.notes.add("rs.text", message);
        self.note()
    }

    /// Leaves an entry out, if that is allowed. `open` is the number of its elements that are still
    /// open below the root.
    fn leave_out(&mut self, fault: Fault, open: u32) -> Result<(), Error> {
        // Exceeding a limit is always an error.
        if self.tolerance != Tolerance::Lenient || fault.code == "rs.links" {
            return Err(self.error(fault));
        }
        let line = *V::line(&mut self.entry);
        self.findings
            .add("rs.entry", line, || format!("left out: {} ({})", fault.message, fault.code));
        self.skipped += 1;
        self.notes.list.clear();
        self.place = if open == 0 {
            Place::Root
        } else {
            Place::Ignored { open, in_entry: false, is_void: false }
        };
        Ok(())
    }

    /// Takes the deviations that were noted in the last element.
    fn note(&mut self) -> Result<(), Error> {
        if self.notes.lenient {
            for (code, message) in self.xml.take_repairs() {
                self.notes.add(code, message);
            }
        }
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

    /// The code of faults in the text that is being read.
    fn text_code(&self) -> &'static str {
        match self.place {
            Place::Field(field) => V::code(field),
            _ => "rs.loc",
        }
    }

    fn end_text(&mut self) -> Result<(), Fault> {
        if let Place::Field(field) = self.place {
            let text = trimmed(&self.text);
            if text.len() > MAX_VALUE_LENGTH {
                return Err(too_long(V::code(field), MAX_VALUE_LENGTH));
            }
            let (entry, spare, notes) = (&mut self.entry, &mut self.spare, &mut self.notes);
            return self.version.end_field(field, entry, text, spare, notes);
        }
        let loc = V::loc(&mut self.entry);
        let inside = trimmed(loc);
        if inside.len() != loc.len() {
            if V::REPAIRS || inside.len() != loc.trim_ascii().len() {
                self.notes.add("rs.loc-space", space_around_loc(loc));
            }
            *loc = inside.to_owned();
        }
        if loc.len() > MAX_URI_LENGTH {
            return Err(too_long("rs.loc", MAX_URI_LENGTH));
        }
        check_loc(loc)
    }

    fn error(&self, fault: Fault) -> Error {
        let error = self.xml.error(fault.code, fault.message);
        match fault.help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

fn too_long(code: &'static str, most: usize) -> Fault {
    Fault::new(code, format!("a text is longer than {most} bytes"))
}

/// Whether a text is one element without content.
fn is_one_element<V: Version>(text: &str) -> bool {
    let mut reader = xml::Reader::new(V::NAMESPACES).repair(V::PREFIXES);
    reader.push(text.as_bytes());
    reader.finish();
    matches!(reader.next(), Ok(Token::Start(_)))
        && matches!(reader.next(), Ok(Token::End))
        && matches!(reader.next(), Ok(Token::Done))
}

/// Whether an element has attributes only, and no text: `rs:md` and `rs:ln`, and `xhtml:link` and `xhtml:meta` in 0.1.
fn is_void(element: &Element<'_>) -> bool {
    !matches!(element.ns(), Ns::NONE | Ns::FOREIGN)
        && matches!(element.local(), "md" | "ln" | "link" | "meta")
}

fn is_root(local: &str) -> bool {
    matches!(local, "urlset" | "sitemapindex")
}

fn root(element: &Element<'_>) -> Result<Root, Fault> {
    match (element.ns(), element.local()) {
        (SM, "urlset") => Ok(Root::UrlSet),
        (SM, "sitemapindex") => Ok(Root::SitemapIndex),
        _ => Err(wrong_root(element)),
    }
}

/// A URI must not contain white space or control characters [rfc3986 §2].
///
/// Lenient: other characters that a URI must percent-encode are accepted as written, since identity
/// is the exact text.
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

/// Reads the head and the entries of a document in memory.
pub(crate) fn read_all<V: Version>(bytes: &[u8]) -> Result<(V::Head, Vec<V::Entry>), Error> {
    const CHUNK: usize = 64 * 1_024;
    let mut parser = Parser::<V>::new(Limits::default());
    let (mut entries, mut entry) = (Vec::new(), V::Entry::default());
    let mut chunks = bytes.chunks(CHUNK);
    loop {
        match parser.next(&mut entry)? {
            Step::NeedInput => match chunks.next() {
                Some(chunk) => parser.feed(chunk),
                None => parser.finish(),
            },
            Step::Head => {}
            Step::Entry => entries.push(std::mem::take(&mut entry)),
            Step::End => return Ok((parser.head, entries)),
        }
    }
}
