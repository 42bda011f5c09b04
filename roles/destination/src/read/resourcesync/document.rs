//! ResourceSync documents, fetched and read part by part [rs-core §7].

use crate::read::protocol::AnswerHead;
use crate::read::resourcesync_0_1::recognise::unpacked;
use crate::read::sitemap::document as sitemap;
use crate::read::sitemap::document::{DOCUMENT_BYTES_MAX, head_in, note, read_received, refusal};
use crate::report::error::{Error, ExitCode};
use crate::request::diagnostics::Diagnostics;
use crate::request::package::listing::Packaged;
use crate::request::pieces::{Answered, Asked, Go, Wanted, receive};
use crate::request::requests::Requests;
use abreast_resourcesync::sitemap::is_another_kind;
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root, SPEC_MAX_ENTRIES, V1_1};
use abreast_store::mirror::Document;
use abreast_webtypes::xml::utf8_begin;
use abreast_webtypes::{Moment, W3cDatetime};

/// Maximum length of a page that is searched for links, in bytes; the start of a document of this length
/// shows its kind.
const PAGE_BYTES_MAX: usize = 256 << 10;

/// A parsed document, with the metadata of the response.
pub(crate) type Read = sitemap::Read<V1_1>;

type Each<'a> = sitemap::Each<'a, V1_1>;

/// The kind of document at a URL, for discovery.
#[derive(Debug)]
pub(crate) enum Page {
    /// A ResourceSync document or Sitemap, parsed as far as requested.
    Document(Box<Read>),
    /// Something else: its first bytes.
    Other(Vec<u8>),
}

/// The required kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A Resource List, a Sitemap, or their index.
    Resources,
    /// A Change List, or an index of Change Lists.
    Changes,
    /// An archive of Change Lists [rs-archives §5].
    ChangesArchive,
    /// A dump, or an index of dumps.
    Dump(Packaged),
    /// The manifest of a package of resources.
    Manifest,
}

impl Kind {
    fn check(self, head: &Head, url: &str) -> Result<(), Error> {
        let due = match self {
            Self::Resources => Capability::ResourceList,
            Self::Changes => Capability::ChangeList,
            Self::ChangesArchive => Capability::ChangeListArchive,
            Self::Dump(packaged) => dump_capability(packaged),
            Self::Manifest => Capability::ResourceDumpManifest,
        };
        let own = head.capability;
        // A plain Sitemap is read as a Resource List.
        if own == Some(due) || self == Self::Resources && own.is_none() {
            return Ok(());
        }
        let message = is_another_kind(url, (own, head.root), due);
        Err(Error::new("list.capability", ExitCode::SourceInvalid, message))
    }

    /// Passes on a part of a document of this kind.
    fn hand_over(
        self,
        part: &sitemap::Part<'_, V1_1>,
        url: &str,
        each: &mut dyn FnMut(Part<'_>) -> Result<Go, Error>,
    ) -> Result<Go, Error> {
        match part {
            sitemap::Part::Begin(head, answered) => {
                self.check(head, url)?;
                each(Part::Begin(head, answered))
            }
            sitemap::Part::Entry(head, entry) => match head.root {
                Root::SitemapIndex => each(Part::Member(Member::of(entry))),
                Root::UrlSet => each(Part::Entry(head, entry)),
            },
        }
    }
}

pub(super) const fn dump_capability(packaged: Packaged) -> Capability {
    match packaged {
        Packaged::Snapshot => Capability::ResourceDump,
        Packaged::Changes => Capability::ChangeDump,
    }
}

/// A part of a document, as it is read.
pub(crate) enum Part<'a> {
    /// The heads of the document and of the response, as in [`sitemap::Part::Begin`].
    Begin(&'a Head, &'a Answered),
    /// A document in an index.
    Member(Member),
    /// Any other entry.
    Entry(&'a Head, &'a Entry),
}

/// A document in an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) url: String,
    /// The content of the document according to the index: a snapshot at this time, or the changes
    /// of an interval.
    pub(crate) at: Option<Moment>,
    pub(crate) from: Option<Moment>,
    pub(crate) until: Option<Moment>,
}

impl Member {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            url: entry.loc.clone(),
            at: entry.at.map(W3cDatetime::moment),
            from: entry.from.map(W3cDatetime::moment),
            until: entry.until.map(W3cDatetime::moment),
        }
    }
}

/// Reads a document of a kind, or their index, part by part; `None` if the document has not changed
/// since the known version.
pub(crate) fn read_parts(
    requests: &Requests<'_>,
    url: &str,
    kind: Kind,
    known: Option<&Document>,
    each: &mut dyn FnMut(Part<'_>) -> Result<Go, Error>,
) -> Result<Option<Read>, Error> {
    let mut each = |part: sitemap::Part<'_, V1_1>| kind.hand_over(&part, url, each);
    let mut checked = Checked::new(url, &requests.diagnostics, &mut each);
    let read = sitemap::read(requests, url, known, &mut |part| checked.part(part))?;
    Ok(read.map(|read| checked.into_read(read)))
}

/// Reads the start of a document as [`read_parts`] reads a whole document.
pub(crate) fn read_first_parts(
    requests: &Requests<'_>,
    url: &str,
    kind: Kind,
    each: &mut dyn FnMut(Part<'_>) -> Result<Go, Error>,
) -> Result<Read, Error> {
    let mut each = |part: sitemap::Part<'_, V1_1>| kind.hand_over(&part, url, each);
    let mut checked = Checked::new(url, &requests.diagnostics, &mut each);
    let read = sitemap::read_begin(requests, url, &mut |part| checked.part(part))?;
    Ok(checked.into_read(read))
}

/// Determines the kind of the document at a URL. If the document leads to other documents, all its
/// entries are passed on as long as `each` wants more; otherwise, only the first entries.
pub(crate) fn read_page(
    requests: &Requests<'_>,
    url: &str,
    links: &mut Vec<String>,
    each: Each<'_>,
) -> Result<Page, Error> {
    let diagnostics = &requests.diagnostics;
    let leads_on = |begin: &[u8]| {
        let head = is_document(begin).then(|| head_in::<V1_1>(begin, diagnostics)).flatten();
        let capability = head.and_then(|head| head.capability);
        matches!(capability, Some(Capability::Description | Capability::CapabilityList))
    };
    let wanted = Wanted::Begin { bytes: PAGE_BYTES_MAX, whole_if: &leads_on };
    let asked = Asked { wanted, ..Asked::whole(url, DOCUMENT_BYTES_MAX) };
    let mut received = receive(requests, &asked)?.ok_or_else(|| sitemap::unasked(url))?;
    let stated = received.answered.links.iter();
    links.extend(stated.flat_map(|value| super::links::in_header(value)));
    let is_linked = crate::read::leads::leads_on(&received.answered.links);
    let begin = received.first_bytes(PAGE_BYTES_MAX)?;
    // A resource of any kind may link to its Source.
    let unpacked = unpacked(&begin);
    let head = AnswerHead { bytes: &utf8_begin(&unpacked) };
    if !is_document(&begin) || is_linked && !head.is_sitemap() {
        return Ok(Page::Other(utf8_begin(&begin).into_owned()));
    }
    let mut checked = Checked::new(url, diagnostics, each);
    let read = read_received(requests, received, &mut |part| checked.part(part))?;
    Ok(Page::Document(Box::new(checked.into_read(read))))
}

/// Whether a text, possibly compressed, starts like a document of this protocol: as XML, but not as
/// a web page, a response of OAI-PMH, or a host's description of itself (RFC 6415).
pub(super) fn is_document(begin: &[u8]) -> bool {
    let is_packed = begin.starts_with(&[0x1f, 0x8b]);
    let begin = utf8_begin(begin);
    let text = begin.trim_ascii_start();
    let is_xml = text.starts_with(b"<");
    let is_host_meta = AnswerHead { bytes: text }.root_element() == Some("XRD");
    let is_other = is_oai_pmh(text) || is_rss(text) || is_host_meta;
    is_packed || is_xml && !super::links::is_html(text) && !is_other
}

/// A document while it is parsed: checks that a parser cannot make, because they compare entries.
struct Checked<'a> {
    url: &'a str,
    diagnostics: &'a Diagnostics,
    each: Each<'a>,
    /// The head of the document, changed to the head of an index if the entries show that it is
    /// one.
    head: Head,
    entries: u64,
    /// Whether the first entry showed that an `urlset` is an index all the same.
    as_index: Option<bool>,
}

impl<'a> Checked<'a> {
    fn new(url: &'a str, diagnostics: &'a Diagnostics, each: Each<'a>) -> Self {
        Self { url, diagnostics, each, head: Head::default(), entries: 0, as_index: None }
    }

    fn part(&mut self, part: sitemap::Part<'_, V1_1>) -> Result<Go, Error> {
        match part {
            sitemap::Part::Begin(head, _) => {
                self.head = head.clone();
                (self.each)(part)
            }
            sitemap::Part::Entry(_, entry) => {
                self.check_entry(entry)?;
                (self.each)(sitemap::Part::Entry(&self.head, entry))
            }
        }
    }

    /// The document, whose kind may differ from its root element.
    fn into_read(self, read: Read) -> Read {
        Read { is_index: self.head.root == Root::SitemapIndex, head: self.head, ..read }
    }

    fn check_entry(&mut self, entry: &Entry) -> Result<(), Error> {
        self.entries += 1;
        if self.head.capability.is_none() && entry.change.is_some() {
            let message = "its entries are changes, and it does not state that it is a Change List";
            return Err(refusal(self.url, "rs.capability", message)
                .with_help("read as a list of all there is, it would delete everything else"));
        }
        if self.entries == SPEC_MAX_ENTRIES + 1 {
            let message =
                format!("more than the {SPEC_MAX_ENTRIES} entries that a Sitemap may have");
            note(self.diagnostics, self.url, "rs.over-limit", entry.line, message)?;
        }
        let own = self.head.capability;
        let is_list = entry.capability.is_some()
            && entry.capability == own
            && !matches!(own, Some(Capability::Description | Capability::CapabilityList));
        match self.as_index {
            None if is_list && self.head.root == Root::UrlSet => {
                let message = "an `urlset` whose entries are lists: read as an index".to_owned();
                note(self.diagnostics, self.url, "rs.root", entry.line, message)?;
                self.head.root = Root::SitemapIndex;
                self.as_index = Some(true);
            }
            None => self.as_index = Some(false),
            Some(was_list)
                if was_list != is_list && (was_list || self.head.root == Root::UrlSet) =>
            {
                let message = "some of its entries are lists and some are not";
                return Err(refusal(self.url, "rs.root", message));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// Whether a text starts like a feed of RSS 0.9, 1.0 or 2.0.
pub(crate) fn is_rss(text: &[u8]) -> bool {
    let begin = &text[..text.len().min(1_024)];
    [&b"<rss"[..], b"=\"http://purl.org/rss/1.0/\"", b"=\"http://my.netscape.com/rdf/simple/0.9/\""]
        .iter()
        .any(|mark| begin.windows(mark.len()).any(|window| window == *mark))
}

/// Whether a text starts like a response of OAI-PMH.
pub(crate) fn is_oai_pmh(text: &[u8]) -> bool {
    text[..text.len().min(1_024)].windows(8).any(|window| window == b"<OAI-PMH")
}
