//! `@context`, and the terms that it defines [emm-1.0 §2.2] [emm-0.1 §3.1] [iiif-discovery §3.4.1].
//!
//! Contexts are never fetched. The contexts of the specifications are built in; terms of other
//! contexts are not checked.

use crate::report::rules as r;
use crate::walk::feeds::Fault;
use abreast_emm::Profile;
use abreast_webtypes::excerpt;
use serde_json::Value;

const STREAMS: &str = "https://www.w3.org/ns/activitystreams";
const EMM_01: &str = "https://ld4.github.io/entity_metadata_management/0.1/context.json";
/// Context of the published version 0.1, which has the same text as version 1.0.
const EMM_01_FINAL: &str = "https://emm-spec.org/0.1/context.json";
const EMM_10: &str = "https://emm-spec.org/1.0/context.json";
const IIIF: &str = "http://iiif.io/api/discovery/1/context.json";

/// Types that the context of Activity Streams defines [as-core §4].
const TYPES: &[&str] = &[
    "Accept",
    "Activity",
    "Add",
    "Announce",
    "Application",
    "Arrive",
    "Article",
    "Audio",
    "Block",
    "Collection",
    "CollectionPage",
    "Create",
    "Delete",
    "Dislike",
    "Document",
    "Event",
    "Flag",
    "Follow",
    "Group",
    "Ignore",
    "Image",
    "IntransitiveActivity",
    "Invite",
    "Join",
    "Leave",
    "Like",
    "Link",
    "Listen",
    "Mention",
    "Move",
    "Note",
    "Object",
    "Offer",
    "OrderedCollection",
    "OrderedCollectionPage",
    "Organization",
    "Page",
    "Person",
    "Place",
    "Profile",
    "Question",
    "Read",
    "Reject",
    "Relationship",
    "Remove",
    "Service",
    "TentativeAccept",
    "TentativeReject",
    "Tombstone",
    "Travel",
    "Undo",
    "Update",
    "Video",
    "View",
];
/// Types of objects that the context of IIIF Change Discovery defines.
const IIIF_TYPES: &[&str] = &[
    "Manifest",
    "Range",
    "Canvas",
    "Annotation",
    "AnnotationPage",
    "AnnotationCollection",
    "Dataset",
    "ImageService2",
    "ImageService3",
    "Text",
    "Agent",
];
const IIIF_PREFIXES: &[&str] =
    &["discov", "oa", "schema", "dc", "dcterms", "xsd", "rdf", "rdfs", "prezi", "img", "dctypes"];
/// Schemes of IRIs without `//` that may be used as types.
const SCHEMES: &[&str] =
    &["urn", "tag", "info", "uuid", "doi", "ark", "hdl", "did", "lsid", "mailto", "data", "geo"];
/// Properties that an extension must not redefine.
const PROPERTIES: &[&str] = &[
    "id",
    "type",
    "actor",
    "content",
    "endTime",
    "first",
    "href",
    "instrument",
    "items",
    "last",
    "mediaType",
    "name",
    "next",
    "object",
    "orderedItems",
    "origin",
    "partOf",
    "prev",
    "published",
    "startTime",
    "summary",
    "target",
    "totalItems",
    "updated",
    "url",
];

/// One context in `@context`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Member {
    Known(&'static str),
    /// URL of a context that is not built in.
    Other(String),
    /// Names of terms that the document itself defines.
    Terms(Vec<String>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Contexts {
    is_stated: bool,
    members: Vec<Member>,
    /// Known contexts with another spelling of their URL, and the exact URL.
    aliases: Vec<(String, &'static str)>,
}

impl Contexts {
    pub(super) fn read(value: Option<&Value>) -> Self {
        let mut all = Self { is_stated: value.is_some(), ..Self::default() };
        for member in value.map(super::object::several).unwrap_or_default() {
            match member {
                Value::String(url) => match known(url) {
                    Some(exact) => {
                        if exact != url {
                            all.aliases.push((url.clone(), exact));
                        }
                        all.members.push(Member::Known(exact));
                    }
                    None => all.members.push(Member::Other(url.clone())),
                },
                Value::Object(terms) => {
                    all.members.push(Member::Terms(terms.keys().cloned().collect()));
                }
                _ => {}
            }
        }
        all
    }

    fn has(&self, url: &'static str) -> bool {
        self.members.contains(&Member::Known(url))
    }

    fn has_emm(&self) -> bool {
        [EMM_01, EMM_01_FINAL, EMM_10].iter().any(|url| self.has(url))
    }

    /// The specification that a document follows, according to its contexts.
    pub(super) fn profile(&self) -> Profile {
        if self.has(IIIF) {
            Profile::Iiif1
        } else if self.has(EMM_01) {
            Profile::Emm01
        } else {
            Profile::Emm10
        }
    }

    /// Whether a context defines `Deprecate`, or may define it.
    pub(super) fn defines_deprecation(&self) -> bool {
        self.has_emm() || self.is_open()
    }

    /// Whether a context that is not built in may define any term.
    fn is_open(&self) -> bool {
        self.members.iter().any(|member| matches!(member, Member::Other(_)))
    }

    fn declares(&self, term: &str) -> bool {
        let declares = |member: &Member| matches!(member, Member::Terms(terms) if terms.iter().any(|own| own == term || own == "@vocab"));
        self.members.iter().any(declares)
    }

    /// Why a type is lost when the document is read as RDF; `None` for a type with an IRI.
    pub(super) fn nothing(&self, term: &str) -> Option<String> {
        // In the draft of 0.1, every term belongs to Activity Streams.
        let is_iiif = self.has(IIIF);
        if self.is_open() || self.has(EMM_01) || !(is_iiif || self.has(STREAMS)) {
            return None;
        }
        let Some((prefix, rest)) = term.split_once(':') else {
            let is_defined = TYPES.contains(&term)
                || is_iiif && IIIF_TYPES.contains(&term)
                || self.declares(term);
            return (!is_defined)
                .then(|| format!("no context defines `{}`: it is lost as RDF", excerpt(term)));
        };
        let is_iri = rest.starts_with("//") || SCHEMES.contains(&prefix);
        let is_declared =
            prefix == "as" || is_iiif && IIIF_PREFIXES.contains(&prefix) || self.declares(prefix);
        (!is_iri && !is_declared)
            .then(|| format!("no context declares the prefix of `{}`", excerpt(term)))
    }

    /// Faults of `@context` in a document; `text` is the whole document.
    pub(super) fn faults(&self, profile: Profile, text: &[u8]) -> Vec<Fault> {
        let mut faults: Vec<Fault> = Vec::new();
        let due = match profile {
            Profile::Emm01 => EMM_01,
            Profile::Emm10 => STREAMS,
            Profile::Iiif1 => IIIF,
        };
        if !self.has(due) {
            let what = if self.is_stated { "it does not have" } else { "it is missing: it needs" };
            faults.push((&r::CF_CONTEXT, format!("{what} {due}")));
        }
        for (found, exact) in &self.aliases {
            faults.push((&r::CF_ALIAS, format!("{} stands for {exact}", excerpt(found))));
        }
        let is_extension = |member: &Member| !matches!(member, Member::Known(_));
        let own = self.members.iter().position(|member| *member == Member::Known(due));
        let is_disordered = match (profile, own) {
            (_, None) => false,
            (Profile::Emm01, Some(own)) => own > 0,
            (Profile::Emm10, Some(_)) => {
                let first = self.members.iter().position(|member| !is_extension(member));
                self.members[first.unwrap_or(0)..].iter().any(is_extension)
            }
            (Profile::Iiif1, Some(own)) => own + 1 < self.members.len(),
        };
        if is_disordered {
            let place = if profile == Profile::Emm01 { "first" } else { "behind extensions" };
            faults.push((&r::CF_CONTEXT_ORDER, format!("{due} is not {place}")));
        }
        let mut terms = self.members.iter().filter_map(|member| match member {
            Member::Terms(terms) => Some(terms),
            _ => None,
        });
        match profile {
            Profile::Emm10 if self.has(STREAMS) && !self.has_emm() => {
                faults.push((&r::EMM_CONTEXT, format!("it does not have {EMM_10}")));
            }
            Profile::Emm10 => {}
            Profile::Emm01 => {
                let over = |term: &&String| {
                    [PROPERTIES, TYPES].concat().contains(&term.as_str()) || *term == "Deprecate"
                };
                let again = terms.flatten().find(over);
                faults.extend(again.map(|term| {
                    (&r::EMM01_OVERRIDE, format!("it defines `{}` again", excerpt(term)))
                }));
            }
            Profile::Iiif1 => {
                if terms.next().is_some() {
                    let message = "it has an object: only URLs may be in it";
                    faults.push((&r::IIIF_CONTEXT_STRINGS, message.to_owned()));
                }
                let inside = text.trim_ascii_start().get(1..).unwrap_or_default();
                if self.is_stated && !inside.trim_ascii_start().starts_with(b"\"@context\"") {
                    let message = "it is not the first member".to_owned();
                    faults.push((&r::IIIF_CONTEXT_FIRST, message));
                }
            }
        }
        faults
    }
}

/// Exact URL of a known context, for any spelling of the URL.
fn known(url: &str) -> Option<&'static str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.strip_prefix("www.").unwrap_or(rest).trim_end_matches(['#', '/']);
    let rest = rest.strip_suffix(".jsonld").or_else(|| rest.strip_suffix(".json")).unwrap_or(rest);
    Some(match rest.strip_suffix("/context").unwrap_or(rest) {
        "w3.org/ns/activitystreams" => STREAMS,
        "ld4.github.io/entity_metadata_management/0.1" => EMM_01,
        "emm-spec.org/0.1" => EMM_01_FINAL,
        "emm-spec.org/1.0" => EMM_10,
        "iiif.io/api/discovery/1" | "iiif.io/api/discovery/1.0" => IIIF,
        _ => return None,
    })
}
