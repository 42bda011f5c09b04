//! Findings: accepted deviations from Atom and SDShare, with their lines.

/// An accepted deviation from the specifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable code, see [`CODES`].
    pub code: &'static str,
    /// Line of the deviation, from 1.
    pub line: u64,
    /// Description of the deviation, with the section that it violates.
    pub message: String,
}

/// Most findings with the same code that are listed; more are only counted.
pub const MAX_FINDINGS_OF_A_CODE: u64 = 100;

/// The codes of findings, each with its meaning.
pub const CODES: &[(&str, &str)] = &[
    ("atom.alternate", "an entry without content and without a link `alternate`"),
    ("atom.alternate-twice", "two links `alternate` of an entry with the same type and language"),
    ("atom.author", "neither the feed nor an entry has an author"),
    ("atom.base", "an `xml:base` that leads nowhere"),
    ("atom.id", "a feed or entry without `id`, or with one that is no absolute IRI, or two"),
    ("atom.link", "a link without `href`, or with one that leads nowhere"),
    ("atom.paging", "the same link to the next page twice"),
    ("atom.paging-loop", "a page whose next page is itself"),
    ("atom.text", "a text between the elements of a feed or entry"),
    ("atom.title", "a feed or entry without `title`, or with two"),
    (
        "atom.updated",
        "a feed or entry without `updated`, with two, or with one that is no date and time",
    ),
    ("sdshare.alternate", "a link that is not repeated with the relation `alternate`"),
    ("sdshare.collection", "a collection feed without exactly one entry for each of its two feeds"),
    ("sdshare.link", "an entry without the link that its feed is for"),
    ("sdshare.mixed", "entries of two kinds of feeds in one"),
    ("sdshare.older", "an element or relation of an older draft"),
    ("sdshare.resource", "a fragment without exactly one resource, or one that is no absolute IRI"),
    ("sdshare.type", "a link without type, or a link to a feed with another type than Atom"),
];

/// Findings of a document, a limited number of each code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) list: Vec<Finding>,
    counts: Vec<(&'static str, u64)>,
}

impl Findings {
    pub(crate) fn add(&mut self, code: &'static str, line: u64, message: String) {
        let place = self.counts.iter().position(|(of, _)| *of == code).unwrap_or_else(|| {
            self.counts.push((code, 0));
            self.counts.len() - 1
        });
        let (_, count) = &mut self.counts[place];
        *count += 1;
        if *count <= MAX_FINDINGS_OF_A_CODE {
            self.list.push(Finding { code, line, message });
        }
    }

    pub(crate) fn count(&self, code: &str) -> u64 {
        self.counts.iter().find(|(of, _)| *of == code).map_or(0, |(_, count)| *count)
    }
}
