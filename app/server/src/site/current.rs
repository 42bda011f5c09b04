//! The site that requests use now, and what remains when it is replaced.

use crate::connection::client::TrustedProxies;
use crate::observe::access::{AccessLog, CurrentLog};
use crate::observe::bounded::Bounded;
use crate::site::administration::Administration;
use crate::site::served::Site;
use crate::site::sessions::Sessions;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The site that new requests use. It can be replaced while the server runs; requests in progress
/// finish with the site that they began with.
pub struct CurrentSite {
    site: RwLock<Arc<Site>>,
    trusted_proxies: RwLock<Option<TrustedProxies>>,
    pub(crate) access_log: Arc<CurrentLog>,
    administration: OnceLock<Arc<dyn Administration>>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) probes: Probes,
}

/// Work for probes that waits for the store.
#[derive(Default)]
pub(crate) struct Probes {
    pub(crate) readiness: Bounded<Result<String, (String, u32)>>,
    pub(crate) metrics: Bounded<()>,
}

impl CurrentSite {
    /// Creates a value with this site as the current one.
    pub fn new(site: impl Into<Arc<Site>>) -> Self {
        Self {
            site: RwLock::new(site.into()),
            trusted_proxies: RwLock::default(),
            access_log: Arc::default(),
            administration: OnceLock::new(),
            sessions: Arc::default(),
            probes: Probes::default(),
        }
    }

    /// Returns the site that new requests use now.
    pub fn now(&self) -> Arc<Site> {
        Arc::clone(&self.site.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the site for all later requests.
    pub fn replace(&self, site: impl Into<Arc<Site>>) {
        let site = site.into();
        let old = std::mem::replace(
            &mut *self.site.write().unwrap_or_else(PoisonError::into_inner),
            site,
        );
        // Dropping a site may take time; requests do not wait for it.
        drop(old);
    }

    /// Replaces the trusted proxies of the server's options.
    pub fn trust_proxies(&self, proxies: TrustedProxies) {
        *self.trusted_proxies.write().unwrap_or_else(PoisonError::into_inner) = Some(proxies);
    }

    /// Logs later requests here, and closes the former log once its lines are written. It waits for
    /// the disk.
    pub fn log_access(&self, log: Option<AccessLog>) {
        self.access_log.replace(log);
    }

    /// Offers these pages at `/admin`. Only the first call has an effect.
    pub fn administer(&self, pages: Arc<dyn Administration>) {
        let _ = self.administration.set(pages);
    }

    /// The pages for administrators, if there are any.
    pub(crate) fn administration(&self) -> Option<&Arc<dyn Administration>> {
        self.administration.get()
    }

    /// The trusted proxies that replace the ones of the server's options.
    pub(crate) fn trusted_proxies(&self) -> Option<TrustedProxies> {
        self.trusted_proxies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
