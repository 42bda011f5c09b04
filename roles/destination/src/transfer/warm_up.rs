//! Connections for the first resources, which are made while the lists of resources are read.

use crate::report::options::SyncOptions;
use crate::request::robots::Robots;
use abreast_core::start_thread;
use abreast_net::{Client, Shared};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Longest time for the connections of a thread and for robots.txt. A run that is stopped meanwhile
/// waits for this time.
const WARM_UP_MAX: Duration = Duration::from_secs(5);

/// A thread's runtime, and a client whose connections the runtime drives.
pub(crate) struct Warm {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
}

impl Warm {
    /// Without connections.
    fn cold(shared: Arc<Shared>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, client: Client::new(shared) })
    }
}

/// The connections of a thread that fetches resources.
#[derive(Default)]
pub(crate) struct Connections(Option<(JoinHandle<io::Result<Warm>>, oneshot::Sender<()>)>);

impl Connections {
    /// Waits until they are made; without connections if that failed.
    pub(crate) fn ready(self, shared: &Arc<Shared>) -> io::Result<Warm> {
        let made = self.0.and_then(|(thread, wanted)| {
            drop(wanted);
            thread.join().ok()?.ok()
        });
        made.map_or_else(|| Warm::cold(Arc::clone(shared)), Ok)
    }
}

/// The connections of all threads that will fetch resources.
#[derive(Default)]
pub(crate) struct WarmUp(Vec<Connections>);

impl WarmUp {
    /// Starts to make connections to the host of this URL, and requests the rules in its robots.txt.
    pub(crate) fn start(
        options: &SyncOptions,
        shared: &Arc<Shared>,
        robots: Option<&Arc<Robots>>,
        url: &str,
    ) -> Self {
        let threads = options.lanes().into_iter().enumerate().map(|(number, lanes)| {
            let (shared, url) = (Arc::clone(shared), url.to_owned());
            let robots = robots.filter(|_| number == 0).map(Arc::clone);
            let (unwanted, wanted) = oneshot::channel();
            let work = move || {
                let warm = Warm::cold(Arc::clone(&shared))?;
                let made = warm.runtime.block_on(async {
                    let work = async {
                        warm.client.prepare(&url, lanes.first).await;
                        if let Some(robots) = robots {
                            robots.prepare(&warm.client, &url).await;
                        }
                    };
                    let made = tokio::time::timeout(WARM_UP_MAX, work).await;
                    if made.is_ok() {
                        // Drives the connections until they are used.
                        let _ = wanted.await;
                    }
                    made
                });
                if made.is_ok() {
                    return Ok(warm);
                }
                // The runtime ends, and with it the tasks that still occupy places of requests.
                drop(warm);
                Warm::cold(shared)
            };
            let thread = start_thread(format!("connect-{number}"), work);
            Connections(thread.ok().map(|thread| (thread, unwanted)))
        });
        Self(threads.collect())
    }

    /// The connections of a thread, once.
    pub(crate) fn take(&mut self, thread: usize) -> Connections {
        self.0.get_mut(thread).map(std::mem::take).unwrap_or_default()
    }
}
