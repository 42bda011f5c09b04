//! Rules for topics: they match the Capability List, and notifications match the published
//! documents [rs-change-notification §2, §4.1] [rs-framework-notification §2, §3].

use super::Relations;
use crate::report::rules as r;
use crate::resourcesync::collect::Child;
use crate::resourcesync::doc::Doc;
use crate::resourcesync::kind;
use crate::resourcesync::topic::hubs;
use crate::walk::node::{Node, Outcome};
use abreast_resourcesync::v1_1::{Capability, Change, Root};
use abreast_webtypes::Timestamp;
use std::collections::{BTreeSet, HashMap};

impl Relations<'_> {
    /// Checks an entry of a Capability List for a topic; returns whether to continue with its
    /// checks.
    pub(super) fn topic(&mut self, number: usize, child: &Child) -> bool {
        let Some((_, node)) = self.node(&child.url) else { return false };
        if let Outcome::Failed(message) = &node.outcome {
            let message = || format!("topic {}: {message}", child.url);
            self.add(number, &r::TOPIC_ANSWERS, child.place, message);
            return false;
        }
        let Some(doc) = node.outcome.record::<Doc>() else { return true };
        let listed: BTreeSet<String> =
            child.announced.iter().flat_map(|announced| announced.hubs.iter().cloned()).collect();
        let named = hubs(&doc.facts);
        // A missing hub is already reported at the entry or at the topic.
        if !listed.is_empty() && !named.is_empty() && listed != named {
            let shown = |hubs: &BTreeSet<String>| {
                abreast_webtypes::excerpt(&Vec::from_iter(hubs.clone()).join(" "))
            };
            let message =
                || format!("{} names {}, this list {}", child.url, shown(&named), shown(&listed));
            self.add(number, &r::TOPIC_HUBS, child.place, message);
        }
        true
    }

    /// Checks that two sets do not share a topic.
    pub(super) fn channels(&mut self) {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for number in 0..self.walked.nodes.len() {
            let Some(doc) = self.doc(number).filter(|doc| doc.is(Capability::CapabilityList))
            else {
                continue;
            };
            for child in doc
                .children
                .iter()
                .filter(|child| child.capability.is_some_and(kind::is_notification))
            {
                let first = *known.entry(&child.url).or_insert(number);
                let first = &self.walked.nodes[first];
                if first.url != self.walked.nodes[number].url {
                    let message = || format!("{} is a topic of {} too", child.url, first.url);
                    self.add(number, &r::CHANNELS, child.place, message);
                }
            }
        }
    }

    /// Checks an entry of a Framework Notification against the document.
    pub(super) fn announced(&mut self, number: usize, child: &Child) {
        let Some(announced) = child
            .announced
            .as_deref()
            .filter(|announced| announced.change != Some(Change::Deleted))
        else {
            return;
        };
        let Some((target, Node { outcome, origin, url, .. })) = self.node(&child.url) else {
            return;
        };
        let Some(below) = outcome.record::<Doc>() else { return };
        if below.root() == Root::SitemapIndex {
            if self.was_there(target, announced.time.map(|time| time.instant)) {
                let name = kind::name(below.capability(), below.root());
                self.add(number, &r::FRAMEWORK_NO_INDEX, child.place, || {
                    format!("{} is a {name}", child.url)
                });
            }
            return;
        }
        if let (Some(due), Some(own)) = (child.capability, below.capability())
            && due != own
        {
            let (due, own) =
                (kind::name(Some(due), Root::UrlSet), kind::name(Some(own), Root::UrlSet));
            self.add(number, &r::CAPABILITY_EQUAL, child.place, || {
                format!("{} is a {own}, not a {due}", child.url)
            });
            return;
        }
        let index =
            below.link(url, "index").map(|(index, _)| index).or_else(|| origin.index.clone());
        let message = match (&announced.index, index) {
            (None, Some(index)) => {
                let there = self.node(&index).map(|(number, _)| number);
                there
                    .is_some_and(|there| {
                        self.was_there(there, announced.time.map(|time| time.instant))
                    })
                    .then(|| format!("{} is under {index}, and has no link to it", child.url))
            }
            (Some(stated), Some(index)) => {
                let same = *stated == index
                    || self.node(stated).is_some()
                        && self.node(stated).map(|(n, _)| n) == self.node(&index).map(|(n, _)| n);
                (!same).then(|| format!("{} is under {index}, not under {stated}", child.url))
            }
            (Some(stated), None) => {
                let other = self.node(stated).and_then(|(number, _)| self.doc(number));
                other.filter(|other| other.head.root == Some(Root::UrlSet)).map(|other| {
                    format!(
                        "{stated} is a {}, not an index",
                        kind::name(other.capability(), other.root())
                    )
                })
            }
            (None, None) => None,
        };
        if let Some(message) = message {
            self.add(number, &r::FRAMEWORK_INDEX, child.place, || message);
        }
    }

    /// Whether the document was an index at the time of the notification. A document with later
    /// times may have become an index after the notification.
    fn was_there(&mut self, index: usize, announced: Option<Timestamp>) -> bool {
        let doc = self.doc(index);
        let newest = self.newest.entry(index).or_insert_with(|| {
            let doc = doc?;
            let own = doc.head.md.iter().flat_map(|md| [md.at, md.completed]);
            let children = doc
                .children
                .iter()
                .flat_map(|child| [child.at, child.completed, child.from, child.until]);
            own.chain(children).flatten().map(|time| time.instant).max()
        });
        match (announced, *newest) {
            (Some(announced), Some(newest)) => newest < announced,
            _ => true,
        }
    }
}
