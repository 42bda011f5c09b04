//! A document of a change feed, with the facts needed to check its order and links.

use crate::emm::item::{Item, PatchFacts};
use abreast_emm::Profile;

/// Facts about a document of a change feed.
#[derive(Debug)]
pub(super) struct Doc {
    pub(super) kind: Kind,
    pub(super) profile: Profile,
    pub(super) id: Option<String>,
    pub(super) summary: String,
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
    pub(super) next: Option<String>,
    pub(super) prev: Option<String>,
    pub(super) part_of: Option<String>,
    pub(super) total: Option<u64>,
    pub(super) downloads: Vec<Download>,
    pub(super) items: Vec<Item>,
    /// Facts from the header of a patch.
    pub(super) patch: Option<PatchFacts>,
    pub(super) bytes: u64,
}

impl Doc {
    pub(super) fn new(kind: Kind, profile: Profile, bytes: &[u8]) -> Self {
        Self {
            kind,
            profile,
            id: None,
            summary: String::new(),
            first: None,
            last: None,
            next: None,
            prev: None,
            part_of: None,
            total: None,
            downloads: Vec::new(),
            items: Vec::new(),
            patch: None,
            bytes: bytes.len() as u64,
        }
    }

    pub(super) fn name(&self) -> String {
        let name = match self.kind {
            Kind::EntryPoint => "Entry Point",
            Kind::Page => "Change Set",
            Kind::Activity => "Activity",
            Kind::Patch => "Entity Patch",
            Kind::RdfPatch => return "RDF Patch".to_owned(),
            Kind::Other => return "JSON".to_owned(),
        };
        let profile = match self.profile {
            Profile::Emm01 => "EMM 0.1",
            Profile::Emm10 => "EMM 1.0",
            Profile::Iiif1 => "IIIF",
        };
        format!("{profile} {name}")
    }
}

/// A link from an Entry Point to the whole Entity Set, or to a web page about the download.
#[derive(Clone, Debug)]
pub(super) struct Download {
    pub(super) href: String,
    pub(super) media_type: String,
    pub(super) updated: Option<String>,
}

impl Download {
    /// Whether the link leads to data, not to a web page, by its media type.
    pub(super) fn is_data(&self) -> bool {
        crate::fetch::values::essence(&self.media_type) != "text/html"
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    EntryPoint,
    Page,
    Activity,
    /// An Entity Patch in JSON.
    Patch,
    /// An RDF Patch without JSON around it.
    RdfPatch,
    Other,
}
