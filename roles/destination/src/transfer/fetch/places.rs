//! The places at which a resource is requested, in order.

use super::Fetcher;
use super::mirrors::Place;
use crate::plan::alternates::{Mirror, is_public_only};
use abreast_store::mirror::Pending;
use abreast_webtypes::Digests;

/// The priority of mirrors that precede the resource's own URL.
const BEFORE_ALL: u32 = 1;

impl Fetcher {
    /// The places to ask, in order.
    pub(crate) fn places<'a>(
        &self,
        item: &'a Pending,
        listed: &Digests,
        mirrors: Vec<Mirror>,
    ) -> Vec<Place<'a>> {
        let own = Place::own(item);
        if mirrors.is_empty() || listed.strongest().is_none() {
            return vec![own];
        }
        let mut rule = self.storer.rules.admission.clone();
        let busy = self.client.is_paused(item.href());
        let mut places = Vec::with_capacity(mirrors.len() + 1);
        let mut own = Some(own);
        for mirror in mirrors {
            if !busy && mirror.priority > BEFORE_ALL {
                places.extend(own.take());
            }
            let Some(public_only) = is_public_only(&mut rule, &mirror.url) else { continue };
            places.push(Place {
                url: mirror.url.into(),
                public_only,
                is_mirror: true,
                past_caches: false,
            });
        }
        places.extend(own);
        places
    }
}
