//! The parser without I/O, which turns bytes into entries.

use crate::feed::finding::{Finding, Findings};
use crate::feed::relation::{ATOM_NAMESPACE, CATEGORIES, KNOWN};
use crate::feed::time::read_time;
use crate::read::check::{Seen, Tally, check_entry};
use crate::read::shape::{Refusal, check_ignored, check_relation, name_of, nested};
use crate::{Entry, Feed, Link, Relation};
use abreast_webtypes::SyntaxError as Error;
use abreast_webtypes::xml::{self, Element, Ns, Token};
use abreast_webtypes::{MAX_URI_LENGTH, Timestamp, excerpt, resolve};

const ATOM: Ns = Ns::known(0);
/// The namespace of SDShare 1.0, then the same without the last slash, then the draft of 2010 in
/// both forms.
const SDSHARE: Ns = Ns::known(1);
const OLDER: [Ns; 3] = [Ns::known(2), Ns::known(3), Ns::known(4)];

/// Bytes of an IRI in an element, including the white space around it.
const MAX_RAW_URI_LENGTH: usize = 2 * MAX_URI_LENGTH;

/// Bytes of a title or a similar text that are stored.
const MAX_TEXT_LENGTH: usize = 4 * 1_024;

/// Limits on a feed: it is refused when it exceeds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Most bytes, 512 MiB by default.
    pub bytes: u64,
    /// Most entries, 1,000,000 by default: many servers list every fragment on one page.
    pub entries: u64,
    /// Most links of an entry and of the feed, 100 by default.
    pub links: usize,
    /// Most resources of an entry, 1,000 by default.
    pub resources: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: xml::DEFAULT_MAX_DOCUMENT_LENGTH,
            entries: 1_000_000,
            links: 100,
            resources: 1_000,
        }
    }
}

impl Limits {
    /// Refuses feeds with more bytes.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Refuses feeds with more entries.
    #[must_use]
    pub const fn with_entries(mut self, entries: u64) -> Self {
        self.entries = entries;
        self
    }
}

/// The result of a call of [`Parser::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More input is needed: call `feed` or `finish`.
    NeedInput,
    /// The next entry was written to the passed `Entry`.
    Entry,
    /// The feed is complete. Only now are the links of the feed complete, and may a caller conclude
    /// that missing entries are not listed.
    End,
}

/// Reads a feed from chunks of any size, entry by entry, in memory bounded by a chunk and an entry.
///
/// The metadata of the feed may follow its entries, so it is complete at the end only.
///
/// ```
/// use abreast_sdshare::{Entry, Limits, Parser, Relation, Step};
///
/// let mut parser = Parser::new("http://example.org/set/fragments", Limits::default());
/// let mut chunks = [
///     "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:s='http://www.sdshare.org/2012/core/'>",
///     "<entry><updated>2026-01-03T09:00:00Z</updated><s:resource>http://example.org/a</s:resource>",
///     "<link rel='http://www.sdshare.org/2012/core/fragment' type='text/turtle' href='a.ttl'/></entry>",
///     "<link rel='next' href='?page=2'/></feed>",
/// ].into_iter();
/// let (mut entry, mut fragments) = (Entry::default(), Vec::new());
/// loop {
///     match parser.next(&mut entry)? {
///         Step::NeedInput => match chunks.next() {
///             Some(chunk) => parser.feed(chunk.as_bytes()),
///             None => parser.finish(),
///         },
///         Step::Entry => fragments.push(entry.links[0].href.clone()),
///         Step::End => break,
///     }
/// }
/// assert_eq!(fragments, ["http://example.org/set/a.ttl"]);
/// let next = parser.head().link(&Relation::Next).map(|link| link.href.as_str());
/// assert_eq!(next, Some("http://example.org/set/fragments?page=2"));
/// # Ok::<(), abreast_sdshare::Error>(())
/// ```
pub struct Parser {
    xml: xml::Reader,
    state: State,
    failed: Option<Error>,
}

/// Everything except the XML reader, which the current token borrows.
struct State {
    limits: Limits,
    place: Place,
    base: String,
    /// The base of the feed and of the entry, if it is set by `xml:base`.
    feed_base: Option<String>,
    entry_base: Option<String>,
    head: Feed,
    entry: Entry,
    entry_seen: Seen,
    /// Resources in the spelling of older drafts, used if the others are missing.
    older: Vec<String>,
    entries: u64,
    text: String,
    tally: Tally,
    findings: Findings,
    /// Deviations in the current element; the line is not known yet.
    notes: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy)]
enum Parent {
    Feed,
    Entry,
    FeedAuthor,
    EntryAuthor,
}

/// The element around the current position.
#[derive(Clone, Copy)]
enum Place {
    Outside,
    In(Parent),
    /// An element whose text is read, with the number of open elements inside.
    Text(Field, u32, Parent),
    /// An ignored element and its descendants.
    Ignored(u32, Parent),
}

#[derive(Clone, Copy)]
enum Field {
    Id,
    Title,
    /// `subtitle` of a feed, or `summary` of an entry.
    Summary,
    Updated,
    Author,
    Resource,
    OlderResource,
}

impl Parser {
    /// Creates a parser for the feed at an address, against which relative links are resolved.
    pub fn new(base: impl Into<String>, limits: Limits) -> Self {
        Self {
            xml: xml::Reader::with_limit(KNOWN, limits.bytes),
            state: State {
                limits,
                place: Place::Outside,
                base: base.into(),
                feed_base: None,
                entry_base: None,
                head: Feed::default(),
                entry: Entry::default(),
                entry_seen: Seen::default(),
                older: Vec::new(),
                entries: 0,
                text: String::new(),
                tally: Tally::default(),
                findings: Findings::default(),
                notes: Vec::new(),
            },
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
        self.xml.push(bytes);
    }

    /// Signals the end of the input.
    pub fn finish(&mut self) {
        self.xml.finish();
    }

    /// The metadata of the feed that was read so far; complete after [`Step::End`].
    pub fn head(&self) -> &Feed {
        &self.state.head
    }

    /// Number of entries that were returned.
    pub fn entries(&self) -> u64 {
        self.state.entries
    }

    /// Accepted deviations so far, up to [`MAX_FINDINGS_OF_A_CODE`](crate::MAX_FINDINGS_OF_A_CODE)
    /// of each code.
    pub fn findings(&self) -> &[Finding] {
        &self.state.findings.list
    }

    /// Number of findings with a code, including findings that are not listed.
    pub fn count_of(&self, code: &str) -> u64 {
        self.state.findings.count(code)
    }

    /// Returns the metadata of the feed, and the findings.
    pub fn into_parts(self) -> (Feed, Vec<Finding>) {
        (self.state.head, self.state.findings.list)
    }

    /// Continues to the next entry or the end. The entry passed is cleared and its allocations are
    /// used again; its content means something only after [`Step::Entry`].
    ///
    /// Lenient: all parts that can be understood are read, and deviations added to
    /// [`Parser::findings`]. An entry that lacks its time or its resource is returned without them,
    /// so that a caller cannot treat it as processed.
    ///
    /// # Errors
    /// By [code](Error::code); after an error the same one is returned at every later call.
    /// - `xml.*`: see [`abreast_webtypes::xml`]
    /// - `atom.root`: the document is not an Atom feed
    /// - `atom.namespace`, `sdshare.namespace`: an element or relation that counts is in another
    ///   namespace than its own
    /// - `atom.nested`: an entry is inside another element than the feed
    /// - `atom.paging`: a link to the next page that leads nowhere, or two with different targets
    /// - `atom.updated`: an entry with two different times
    /// - `sdshare.limit`: too many entries, links or resources
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
            let done = match self.xml.next()? {
                Token::NeedInput => return Ok(Step::NeedInput),
                Token::Done => {
                    self.state.end_feed();
                    return Ok(Step::End);
                }
                Token::Text(text) => {
                    self.state.text(text);
                    continue;
                }
                Token::Markup(_) => continue,
                Token::Start(element) => self.state.start(&element),
                Token::End => self.state.end(),
            };
            let entry_is_done = match done {
                Ok(done) => done,
                Err((code, message, help)) => {
                    let error = self.xml.error(code, message);
                    return Err(match help {
                        Some(help) => error.with_help(help),
                        None => error,
                    });
                }
            };
            if self.state.needs_line(entry_is_done) {
                let line = self.xml.line();
                self.state.take_notes(line);
            }
            if entry_is_done {
                entry.clear();
                std::mem::swap(entry, &mut self.state.entry);
                self.state.entries += 1;
                return Ok(Step::Entry);
            }
        }
    }
}

impl State {
    fn text(&mut self, text: &str) {
        let field = match self.place {
            Place::Text(field, ..) => field,
            // If the `<` of an element is missing, the element becomes a text.
            Place::In(_) if !text.trim_ascii().is_empty() => {
                let text = excerpt(text.trim_ascii());
                return self.note("atom.text", format!("the text \"{text}\" between elements"));
            }
            _ => return,
        };
        let most = match field {
            // A text that was cut remains too long, also if it has white space.
            Field::Id | Field::Resource | Field::OlderResource => MAX_RAW_URI_LENGTH + 4,
            _ => MAX_TEXT_LENGTH,
        };
        let room = most.saturating_sub(self.text.len());
        self.text.push_str(cut(text, room));
    }

    /// Starts an element; returns whether an entry is complete.
    fn start(&mut self, element: &Element<'_>) -> Result<bool, Refusal> {
        self.place = match self.place {
            // In an entry, it may be content in another format.
            Place::Ignored(_, Parent::Feed)
                if element.ns() == ATOM && element.local() == "entry" =>
            {
                return Err(nested(element));
            }
            Place::Ignored(open, parent) => Place::Ignored(open + 1, parent),
            // Markup inside a text, such as XHTML in a title.
            Place::Text(field, open, parent) => Place::Text(field, open + 1, parent),
            Place::Outside => {
                check_root(element)?;
                self.feed_base = self.base_of(element);
                Place::In(Parent::Feed)
            }
            Place::In(parent @ Parent::Feed) => match (element.ns(), element.local()) {
                (ATOM, "id") => self.collect(Field::Id, parent),
                (ATOM, "title") => self.collect(Field::Title, parent),
                (ATOM, "subtitle") => self.collect(Field::Summary, parent),
                (ATOM, "updated") => self.collect(Field::Updated, parent),
                (ATOM, "author") => Place::In(Parent::FeedAuthor),
                (ATOM, "category") => {
                    self.head.has_files |= is_category(element, "files");
                    Place::Ignored(1, parent)
                }
                (ATOM, "link") => {
                    if self.head.links.len() == self.limits.links {
                        return Err(self.too_many("links of the feed", self.limits.links as u64));
                    }
                    let link = self.read_link(element)?;
                    self.check_paging(element, link.as_ref())?;
                    self.head.links.extend(link);
                    Place::Ignored(1, parent)
                }
                (ATOM, "entry") => {
                    if self.entries == self.limits.entries {
                        return Err(self.too_many("entries", self.limits.entries));
                    }
                    self.entry.clear();
                    self.older.clear();
                    self.entry_seen = Seen::default();
                    self.entry_base = self.base_of(element);
                    Place::In(Parent::Entry)
                }
                _ => {
                    check_ignored(element, true)?;
                    Place::Ignored(1, parent)
                }
            },
            Place::In(parent @ Parent::Entry) => match (element.ns(), element.local()) {
                (ATOM, "id") => self.collect(Field::Id, parent),
                (ATOM, "title") => self.collect(Field::Title, parent),
                (ATOM, "summary") => self.collect(Field::Summary, parent),
                (ATOM, "updated") => self.collect(Field::Updated, parent),
                (ATOM, "author") => Place::In(Parent::EntryAuthor),
                (ATOM, "category") => {
                    self.entry.is_deleted |= is_category(element, "deleted");
                    Place::Ignored(1, parent)
                }
                (ATOM, "content") => {
                    self.entry_seen.content = true;
                    Place::Ignored(1, parent)
                }
                (ATOM, "link") => {
                    if self.entry.links.len() == self.limits.links {
                        return Err(self.too_many("links of an entry", self.limits.links as u64));
                    }
                    let link = self.read_link(element)?;
                    self.entry.links.extend(link);
                    Place::Ignored(1, parent)
                }
                (SDSHARE, "resource") => self.collect_resource(Field::Resource, parent)?,
                (ns, name @ ("resource" | "ResourceUri" | "TopicSI"))
                    if ns == SDSHARE || OLDER.contains(&ns) =>
                {
                    let message =
                        format!("`{name}` of an older draft; 1.0 has `resource` in its namespace");
                    self.note("sdshare.older", message);
                    self.collect_resource(Field::OlderResource, parent)?
                }
                _ => {
                    check_ignored(element, false)?;
                    Place::Ignored(1, parent)
                }
            },
            Place::In(parent @ (Parent::FeedAuthor | Parent::EntryAuthor)) => {
                if element.ns() == ATOM && element.local() == "name" {
                    self.collect(Field::Author, parent)
                } else {
                    Place::Ignored(1, parent)
                }
            }
        };
        Ok(false)
    }

    fn collect(&mut self, field: Field, parent: Parent) -> Place {
        self.text.clear();
        Place::Text(field, 1, parent)
    }

    fn collect_resource(&mut self, field: Field, parent: Parent) -> Result<Place, Refusal> {
        if self.entry.resources.len() + self.older.len() == self.limits.resources {
            return Err(self.too_many("resources of an entry", self.limits.resources as u64));
        }
        Ok(self.collect(field, parent))
    }

    #[expect(clippy::unused_self, reason = "reads as the other refusals")]
    fn too_many(&self, what: &str, most: u64) -> Refusal {
        ("sdshare.limit", format!("more than {most} {what}"), None)
    }

    /// Ends an element; returns whether an entry is complete.
    fn end(&mut self) -> Result<bool, Refusal> {
        match self.place {
            Place::Ignored(1, parent) => self.place = Place::In(parent),
            Place::Ignored(open, parent) => self.place = Place::Ignored(open - 1, parent),
            Place::Text(field, 1, parent) => {
                self.place = Place::In(parent);
                self.end_text(field, parent)?;
            }
            Place::Text(field, open, parent) => self.place = Place::Text(field, open - 1, parent),
            Place::In(Parent::FeedAuthor) => self.place = Place::In(Parent::Feed),
            Place::In(Parent::EntryAuthor) => self.place = Place::In(Parent::Entry),
            Place::In(Parent::Feed) => self.place = Place::Outside,
            Place::In(Parent::Entry) => {
                self.place = Place::In(Parent::Feed);
                self.entry_base = None;
                if self.entry.resources.is_empty() {
                    self.entry.resources.append(&mut self.older);
                }
                return Ok(true);
            }
            Place::Outside => {}
        }
        Ok(false)
    }

    fn end_text(&mut self, field: Field, parent: Parent) -> Result<(), Refusal> {
        let text = std::mem::take(&mut self.text);
        let value = text.trim_ascii();
        let too_long = value.len() > MAX_URI_LENGTH || text.len() > MAX_RAW_URI_LENGTH;
        let in_entry = matches!(parent, Parent::Entry | Parent::EntryAuthor);
        match field {
            Field::Id if too_long => {
                self.note("atom.id", format!("`id` is longer than {MAX_URI_LENGTH} bytes"));
            }
            Field::Id => self.end_id(value, in_entry),
            Field::Title => {
                let title = if in_entry { &mut self.entry.title } else { &mut self.head.title };
                let second = !title.is_empty();
                value.clone_into(title);
                if second {
                    self.note("atom.title", "a second `title` in one place".to_owned());
                }
            }
            Field::Summary if in_entry => self.entry.summary = Some(value.to_owned()),
            Field::Summary => self.head.subtitle = Some(value.to_owned()),
            Field::Author if value.is_empty() => {}
            Field::Author if in_entry => self.entry.author = Some(value.to_owned()),
            Field::Author => self.head.author = Some(value.to_owned()),
            Field::Updated => {
                let time = self.read_updated(value);
                let seen = if in_entry { self.entry_seen.updated } else { self.tally.feed_updated };
                if seen {
                    if in_entry && self.entry.updated != time {
                        // The entry may have been processed already, by one of the two times.
                        let message = "two different `updated` in one entry [rfc4287 §4.1.2]";
                        return Err(("atom.updated", message.to_owned(), None));
                    }
                    self.note("atom.updated", "a second `updated` in one place".to_owned());
                }
                if in_entry {
                    self.entry_seen.updated = true;
                    self.entry.updated = time;
                } else {
                    self.tally.feed_updated = true;
                    self.head.updated = time;
                }
            }
            Field::Resource | Field::OlderResource => {
                if too_long {
                    let message = format!("a resource is longer than {MAX_URI_LENGTH} bytes");
                    self.note("sdshare.resource", message);
                } else if value.is_empty() {
                    self.note("sdshare.resource", "`resource` is empty".to_owned());
                } else {
                    if !is_absolute(value) {
                        let message =
                            format!("`resource` is no absolute IRI: \"{}\"", excerpt(value));
                        self.note("sdshare.resource", message);
                    }
                    let older = matches!(field, Field::OlderResource);
                    let list = if older { &mut self.older } else { &mut self.entry.resources };
                    // Some servers write the resource in two spellings.
                    if !older || !list.iter().any(|other| other == value) {
                        list.push(value.to_owned());
                    }
                }
            }
        }
        self.text = text;
        Ok(())
    }

    fn end_id(&mut self, value: &str, in_entry: bool) {
        if !is_absolute(value) {
            let message =
                format!("`id` is no absolute IRI: \"{}\" [rfc4287 §4.2.6]", excerpt(value));
            self.note("atom.id", message);
        }
        let id = if in_entry { &mut self.entry.id } else { &mut self.head.id };
        let second = !id.is_empty();
        value.clone_into(id);
        if second {
            self.note("atom.id", "a second `id` in one place".to_owned());
        }
    }

    fn read_updated(&mut self, value: &str) -> Option<Timestamp> {
        match read_time(value) {
            Ok(read) => {
                if let Some(deviation) = read.deviation {
                    let message =
                        format!("`updated` is \"{}\": {deviation} [rfc4287 §3.3]", excerpt(value));
                    self.note("atom.updated", message);
                }
                Some(read.time)
            }
            Err(cause) => {
                let message =
                    format!("`updated` is \"{}\": {cause} [rfc4287 §3.3]", excerpt(value));
                self.note("atom.updated", message);
                None
            }
        }
    }

    /// The base that an element sets, if it has `xml:base` [rfc4287 §2].
    fn base_of(&mut self, element: &Element<'_>) -> Option<String> {
        let attribute = element
            .attributes()
            .find(|attribute| attribute.ns() == Ns::XML && attribute.local() == "base")?;
        match resolve(self.current_base(), &attribute.value()) {
            Ok(base) => Some(base),
            Err(error) => {
                self.note("atom.base", format!("`xml:base`: {error}"));
                None
            }
        }
    }

    fn current_base(&self) -> &str {
        self.entry_base.as_deref().or(self.feed_base.as_deref()).unwrap_or(&self.base)
    }

    /// Checks that a link to the next page has exactly one target.
    fn check_paging(&self, element: &Element<'_>, link: Option<&Link>) -> Result<(), Refusal> {
        let is_next = |rel: &str| Relation::parse(rel.trim_ascii()).0 == Relation::Next;
        let message = match (link, self.head.link(&Relation::Next)) {
            (None, _) if element.attribute("rel").is_some_and(|rel| is_next(&rel)) => {
                "the link to the next page leads nowhere"
            }
            (Some(link), Some(first))
                if link.relation == Relation::Next && link.href != first.href =>
            {
                "two links to different next pages [sdshare §Fragments Feed]"
            }
            _ => return Ok(()),
        };
        Err(("atom.paging", message.to_owned(), None))
    }

    /// Reads a link; `None` if its target is not usable.
    fn read_link(&mut self, element: &Element<'_>) -> Result<Option<Link>, Refusal> {
        let base = self.base_of(element);
        let relation = element.attribute("rel");
        let (relation, older) = match relation.as_deref().map(str::trim_ascii) {
            // The default of `rel` is `alternate` [rfc4287 §4.2.7.2].
            None | Some("") => (Relation::Alternate, false),
            Some(text) => Relation::parse(cut(text, MAX_URI_LENGTH).trim_ascii()),
        };
        check_relation(&relation)?;
        if older {
            let written = element.attribute("rel").unwrap_or_default();
            let message = format!("`rel` is \"{}\"; 1.0 has \"{relation}\"", excerpt(&written));
            self.note("sdshare.older", message);
        }
        let Some(written) = element.attribute("href") else {
            self.note("atom.link", "a link without `href` [rfc4287 §4.2.7.1]".to_owned());
            return Ok(None);
        };
        let href = match resolve(base.as_deref().unwrap_or(self.current_base()), &written) {
            Ok(href) => href,
            Err(error) => {
                self.note("atom.link", format!("a link leads nowhere: {error}"));
                return Ok(None);
            }
        };
        let short = |name: &str| {
            let value = element.attribute(name)?;
            let value = cut(value.trim_ascii(), MAX_TEXT_LENGTH).trim_ascii();
            (!value.is_empty()).then(|| value.to_owned())
        };
        let (media_type, hreflang) = (short("type"), short("hreflang"));
        Ok(Some(Link { relation, href, media_type, hreflang }))
    }

    fn note(&mut self, code: &'static str, message: String) {
        self.notes.push((code, message));
    }

    /// Whether the line of the current element is needed.
    fn needs_line(&self, entry_is_done: bool) -> bool {
        let entry_began = matches!(self.place, Place::In(Parent::Entry)) && self.entry.line == 0;
        let feed_began = self.tally.line == 0;
        entry_is_done || entry_began || feed_began || !self.notes.is_empty()
    }

    fn take_notes(&mut self, line: u64) {
        if self.tally.line == 0 {
            self.tally.line = line;
        }
        for (code, message) in self.notes.drain(..) {
            self.findings.add(code, line, message);
        }
        match self.place {
            Place::In(Parent::Entry) if self.entry.line == 0 => self.entry.line = line,
            // The entry just ended.
            Place::In(Parent::Feed) if self.entry.line != 0 => {
                check_entry(&self.entry, self.entry_seen, &mut self.tally, &mut self.findings);
            }
            _ => {}
        }
    }

    fn end_feed(&mut self) {
        let tally = std::mem::take(&mut self.tally);
        tally.check(&self.head, &self.base, &mut self.findings);
    }
}

/// The first bytes of a text, at most `most`.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether a category has the scheme [`CATEGORIES`] and this term.
fn is_category(element: &Element<'_>, term: &str) -> bool {
    let has = |name: &str, value: &str| element.attribute(name).is_some_and(|text| text == value);
    has("scheme", CATEGORIES) && has("term", term)
}

/// Checks that the root is `feed` of Atom.
fn check_root(element: &Element<'_>) -> Result<(), Refusal> {
    let help = match (element.ns(), element.local()) {
        (ATOM, "feed") => return Ok(()),
        (ATOM, "entry") => "a feed is expected, not a single entry",
        (_, "feed") => "the namespace of Atom is `http://www.w3.org/2005/Atom`",
        (_, "rss" | "RDF") => "this looks like RSS or RDF: SDShare is served as Atom",
        (_, "html") => {
            "this is a web page: check the address, and whether the server asks for a password"
        }
        _ => "the root is `feed` of Atom",
    };
    let message = format!(
        "the root is `{}` in {}, not `feed` of <{ATOM_NAMESPACE}>",
        excerpt(element.local()),
        name_of(element.namespace())
    );
    Err(("atom.root", message, Some(help)))
}

/// Whether a text has a scheme, and neither blanks nor control characters.
pub(crate) fn is_absolute(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(is_part)
        && !text.bytes().any(|byte| byte <= b' ' || byte == 0x7f)
}
