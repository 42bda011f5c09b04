//! Checks of a sample of the link targets of activities: representations, documents of activities,
//! and patches.

use super::pages::Walk;
use crate::emm::doc::{Doc, Kind};
use crate::emm::item::Item;
use crate::fetch::{Failure, is_url, values};
use crate::report::rules as r;
use crate::walk::feeds::Feeds;
use abreast_emm::Profile;
use abreast_webtypes::excerpt;

/// Documents of activities, and patches, that are read for a feed.
const DOCUMENTS_MAX: usize = 10;
/// Representations of an entity that are fetched.
const LINKS_MAX: usize = 5;
/// Most bytes of a representation that are read.
const BYTES: u64 = 64 << 10;

impl Feeds<'_> {
    pub(super) async fn sample(
        &mut self,
        number: usize,
        entry: &Doc,
        address: &str,
        walk: &Walk,
    ) -> Result<(), Failure> {
        let items: Vec<(String, Item)> =
            walk.sample.entities.iter().map(|(_, kept)| kept.clone()).collect();
        let mut is_elsewhere = false;
        // Only the newest activity of an entity shows whether the entity still exists.
        let current = items.iter().filter(|(_, item)| walk.has_newest() && !item.is_end());
        for (page, item) in current {
            is_elsewhere |= !self.representations(number, page, item).await?;
        }
        if is_elsewhere {
            let message = "entities on other hosts were not sampled".to_owned();
            self.fault(number, address, &r::OTHER_HOST, message);
        }
        let of_draft = items.iter().filter(|_| entry.profile == Profile::Emm01);
        for (page, item) in of_draft.take(DOCUMENTS_MAX) {
            self.of_activity(number, page, item).await?;
        }
        self.skip_to(number, address, walk).await
    }

    /// Fetches the representations of an entity; `false` if all are on hosts that are not allowed.
    async fn representations(
        &mut self,
        number: usize,
        page: &str,
        item: &Item,
    ) -> Result<bool, Failure> {
        let own = [(item.object.clone().unwrap_or_default(), String::new())];
        let links = if item.links.is_empty() { &own[..] } else { &item.links };
        let mut may = false;
        for (url, due) in links.iter().take(LINKS_MAX) {
            if !self.hosts.may(url) {
                continue;
            }
            may = true;
            self.sampled += 1;
            let accept = Some(due.as_str()).filter(|due| !due.is_empty());
            let at = format!("/orderedItems/{}/object", item.number);
            match self.ask(url, accept, false, BYTES).await? {
                // A server may restrict the access to representations [iiif-discovery §4.2].
                Ok(answer) if matches!(answer.facts.status, 401 | 403) => {}
                Ok(answer) if answer.facts.is_success() => {
                    let kind = answer.facts.content_type.unwrap_or_default();
                    if !due.is_empty() && values::essence(&kind) != values::essence(due) {
                        let message =
                            format!("{at}: {} is delivered as {}", excerpt(url), excerpt(&kind));
                        self.fault(number, page, &r::CF_DELIVERED, message);
                    }
                }
                Ok(answer) => {
                    let status = answer.facts.status;
                    let message = format!("{at}: {} is answered {status}", excerpt(url));
                    self.fault(number, page, &r::EMM_DEREFERENCE, message);
                }
                Err(error) => {
                    let message = format!("{at}: {}: {error}", excerpt(url));
                    self.fault(number, page, &r::EMM_DEREFERENCE, message);
                }
            }
        }
        Ok(may)
    }

    /// Checks the document of an activity and of its patch [emm-0.1 §4.1, §4.2].
    async fn of_activity(&mut self, number: usize, page: &str, item: &Item) -> Result<(), Failure> {
        if let Some(id) = item.id.as_deref().filter(|id| is_url(id)) {
            self.sampled += 1;
            if let Some(why) = self.differs(id).await? {
                let message = format!("/orderedItems/{}: {}: {why}", item.number, excerpt(id));
                self.fault(number, page, &r::EMM01_ID_SERVED, message);
            }
        }
        let Some(url) = item.instrument.as_deref().filter(|url| self.hosts.may(url)) else {
            return Ok(());
        };
        self.sampled += 1;
        let found = match self.ask(url, None, false, BYTES).await? {
            // The server no longer stores this patch.
            Ok(answer) if answer.facts.status == 410 => return Ok(()),
            Ok(answer) if answer.facts.is_success() => {
                match self.document_of(url, Some(item)).await {
                    Ok((Some(doc), _, found))
                        if matches!(doc.kind, Kind::Patch | Kind::RdfPatch) =>
                    {
                        self.keep(number, found);
                        return Ok(());
                    }
                    Ok(_) => "it is no Entity Patch".to_owned(),
                    Err(Failure::Missing(message)) => message,
                    Err(other) => return Err(other),
                }
            }
            Ok(answer) => format!("it is answered {}", answer.facts.status),
            Err(error) => error,
        };
        let message =
            format!("/orderedItems/{}/instrument: {}: {found}", item.number, excerpt(url));
        self.fault(number, page, &r::EMM01_INSTRUMENT, message);
        Ok(())
    }

    /// Fetches the headers of the newest linked patches, for the check of their chain.
    pub(super) async fn linked_patches(&mut self, walk: &mut Walk) -> Result<(), Failure> {
        for linked in walk.history.take_linked() {
            if !self.hosts.may(&linked.url) {
                continue;
            }
            self.sampled += 1;
            // Other faults of patches are reported only for sampled patches.
            match self.document(&linked.url).await {
                Ok((Some(doc), ..)) => {
                    if let Some(facts) = doc.patch {
                        walk.history.fetched(&linked, facts);
                    }
                }
                Ok(_) | Err(Failure::Missing(_)) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// If the feed supports `skip-to`, checks that the time of the newest activity leads to a page
    /// with an activity at this time.
    async fn skip_to(&mut self, number: usize, address: &str, walk: &Walk) -> Result<(), Failure> {
        let Some(newest) = walk.newest() else { return Ok(()) };
        let url = format!("{}/skip-to?datetime={newest}", address.trim_end_matches('/'));
        if !self.ask(&url, None, false, BYTES).await?.is_ok_and(|answer| answer.facts.is_success())
        {
            return Ok(());
        }
        let Ok((Some(doc), ..)) = self.document(&url).await else { return Ok(()) };
        let has = |item: &Item| item.time.is_some_and(|time| time.instant >= newest);
        if doc.kind == Kind::Page && !doc.items.iter().any(has) {
            let message = format!("the page that it leads to has no activity since {newest}");
            self.fault(number, address, &r::CF_SKIP_TO, message);
        }
        Ok(())
    }
}
