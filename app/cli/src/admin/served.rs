//! Reports of a running server to its operators.

use crate::admin::address::answer_at;
use crate::admin::followers::report_text;
use crate::admin::socket::{self, OwnSocket};
use crate::config::admin::AdminConfig;
use abreast_admin::{AdminPages, Samples, SiteReport, Sources};
use abreast_maintenance::{CopyStatus, free_bytes};
use abreast_server::{AdminServer, CurrentSite, Metrics, Observed};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Handle;

/// Time after which a server that does not start a task counts as hung.
const LIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Lists the copies of the configured jobs.
pub(crate) type ListCopies = Box<dyn Fn() -> Vec<CopyStatus> + Send + Sync>;

/// The answers to operators, until this is dropped.
pub(crate) struct ServedAdmin {
    _server: AdminServer,
    _socket: Option<OwnSocket>,
}

/// Answers operators of a server on the address, if one is configured, on the socket in the folder
/// of its store, and at `/admin` unless `pages` is absent.
///
/// # Errors
/// The address is in use, or the system starts no thread.
pub(crate) fn start(
    runtime: &Handle,
    site: &Arc<CurrentSite>,
    data: &Path,
    address: Option<&AdminConfig>,
    pages: Option<ListCopies>,
) -> Result<ServedAdmin> {
    let report = SiteReport::new(data);
    if let Some(copies) = pages {
        let samples = Samples::start(site, data.to_owned());
        site.administer(Arc::new(AdminPages::new(Sources {
            report: report.clone(),
            samples: samples.context("cannot start the thread that counts for administrators")?,
            log: Box::new(crate::program::recent_log::lines),
            copies,
        })));
    }
    let server = AdminServer::start().context("cannot start the thread for operators")?;
    let observed: Arc<dyn Observed> =
        Arc::new(ObservedSite { site: Arc::clone(site), runtime: runtime.clone(), report });
    if let Some(address) = address {
        let address = answer_at(&server, address, Arc::clone(&observed))?;
        crate::program::logging::ready(&format!("  probes, metrics http://{address}/"));
    }
    let opened = socket::listen(data, socket::SERVER).and_then(|(listener, own)| {
        server.answer_on(listener, observed)?;
        Ok(own)
    });
    let socket = opened.map_err(|error| {
        tracing::debug!("cannot report the status on a socket in {}: {error}", data.display());
    });
    Ok(ServedAdmin { _server: server, _socket: socket.ok() })
}

/// Renders `/metrics` of a server with this store.
pub(crate) fn render(metrics: Metrics, data: &Path) -> Arc<dyn Fn() -> String + Send + Sync> {
    let data = data.to_owned();
    Arc::new(move || {
        if let Some(free) = free_bytes(&data) {
            metrics::gauge!("abreast_store_free_bytes").set(free as f64);
        }
        metrics.render()
    })
}

struct ObservedSite {
    site: Arc<CurrentSite>,
    /// The runtime of the server.
    runtime: Handle,
    report: SiteReport,
}

impl Observed for ObservedSite {
    fn live(&self) -> Result<String, String> {
        let (sender, receiver) = mpsc::channel();
        self.runtime.spawn(async move {
            let _ = sender.send(());
        });
        let seconds = LIVE_TIMEOUT.as_secs();
        let begun = receiver.recv_timeout(LIVE_TIMEOUT);
        begun
            .map(|()| "alive\n".to_owned())
            .map_err(|_| format!("the server has not begun a task for {seconds} s\n"))
    }

    fn ready(&self) -> Result<String, String> {
        self.site.readiness()
    }

    fn metrics(&self) -> String {
        self.site.metrics_text()
    }

    fn status(&self) -> String {
        let mut report = crate::admin::ask::new_report();
        report.stores.push(self.report.store(&self.site.now()));
        report_text(report)
    }
}
