//! Plain Sitemap indexes, which show no version: that of the first Sitemap counts, as for copies.

use crate::fetch::{self, Failure, Go};
use crate::node::is_url;
use crate::walk::Walk;
use abreast_net::Client;
use abreast_resourcesync::v0_1::{INDEXES_MAX, first_of_plain_index, has_marks};

/// Bytes that show what a document is: as many as copies look at.
pub(crate) const BEGIN_MAX: usize = 4 << 10;

impl Walk<'_> {
    /// Whether the Sitemaps below a plain index are of 0.1, by the first. What cannot be requested shows nothing.
    pub(crate) async fn leads_to_0_1(
        &self,
        client: &Client,
        index: &str,
        begin: &[u8],
    ) -> Result<bool, Failure> {
        if !self.options.walk || !is_url(index) {
            return Ok(false);
        }
        let mut next = first_of_plain_index(begin);
        for _ in 0..INDEXES_MAX {
            let Some(url) = next.take().filter(|url| self.is_allowed(url)) else { break };
            match self.begin_of(client, &url).await {
                Ok(begin) if has_marks(&begin) => return Ok(true),
                Ok(begin) => next = first_of_plain_index(&begin),
                Err(Failure::Missing(_)) => break,
                Err(other) => return Err(other),
            }
        }
        Ok(false)
    }

    async fn begin_of(&self, client: &Client, url: &str) -> Result<Vec<u8>, Failure> {
        let begin = std::cell::RefCell::new(Vec::new());
        let restart = |_: &fetch::ResponseFacts| {
            begin.borrow_mut().clear();
            Go::On
        };
        let piece = |bytes: &[u8]| {
            let mut begin = begin.borrow_mut();
            begin.extend_from_slice(bytes);
            if begin.len() < BEGIN_MAX { Go::On } else { Go::Enough }
        };
        fetch::url(client, url, false, self.budget, restart, piece).await?;
        Ok(begin.into_inner())
    }
}
