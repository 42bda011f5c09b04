//! Connections at a time of a server: when all places are taken, the client address that has most of them gives one up.
//!
//! The oldest idle connection of that address is closed. Requests in flight end first, unless that address has more
//! than half of all places and another one waits. Nobody is limited while there are places, since all clients
//! of a proxy have one address.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How often another connection is asked to end while somebody waits.
const STEP: Duration = Duration::from_millis(20);
/// How long a connection that was asked to end may go on with its request where its address has too many.
const GRACE: Duration = Duration::from_secs(1);

/// The places of one server.
#[derive(Debug)]
pub struct Places {
    total: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    count: usize,
    /// Of each address, the oldest first.
    by_address: HashMap<IpAddr, VecDeque<Arc<Holder>>>,
}

#[derive(Debug, Default)]
struct Holder {
    /// A request came on it.
    asked: AtomicBool,
    /// When it was told to end.
    told: Mutex<Option<Instant>>,
    leave: Notify,
    force: Notify,
}

/// A place of a connection, free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    address: IpAddr,
    holder: Arc<Holder>,
}

/// How a connection that is told to end does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// At once: nothing was asked on it.
    Now,
    /// When what is in flight is answered; at once if nothing is.
    AfterAnswer,
}

impl Places {
    /// So many places.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total: total.max(1), taken: Mutex::default(), freed: Notify::new() })
    }

    /// A place for a connection from this address, as soon as there is one.
    pub async fn enter(self: &Arc<Self>, client: IpAddr) -> Place {
        let address = counted_as(client);
        loop {
            let freed = self.freed.notified();
            {
                let mut taken = self.lock();
                if taken.count < self.total {
                    taken.count += 1;
                    let holder = Arc::new(Holder::default());
                    taken.by_address.entry(address).or_default().push_back(Arc::clone(&holder));
                    return Place { places: Arc::clone(self), address, holder };
                }
                self.make_room(&taken, address);
            }
            let _ = tokio::time::timeout(STEP, freed).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells one connection to end.
    fn make_room(&self, taken: &Taken, newcomer: IpAddr) {
        // Of addresses with as many, the one whose oldest connection was not told yet.
        let most = taken
            .by_address
            .iter()
            .max_by_key(|(_, holders)| (holders.len(), holders.front().is_some_and(|oldest| oldest.told().is_none())));
        let Some((address, holders)) = most else { return };
        let now = Instant::now();
        // Those that wait for a request leave before those that have one.
        let untold = || holders.iter().filter(|holder| holder.told().is_none());
        if let Some(holder) = untold().find(|holder| !holder.asked.load(Ordering::Relaxed)).or_else(|| untold().next())
        {
            holder.tell(now);
        } else if *address != newcomer
            && holders.len() * 2 > self.total
            && let Some(holder) =
                holders.iter().find(|holder| holder.told().is_some_and(|told| now.duration_since(told) >= GRACE))
        {
            holder.force.notify_one();
        }
    }
}

impl Holder {
    fn told(&self) -> Option<Instant> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, now: Instant) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.leave.notify_one();
    }
}

impl Place {
    /// A request came on this connection.
    pub fn asked(&self) {
        self.holder.asked.store(true, Ordering::Relaxed);
    }

    /// Waits until the place is needed for somebody else.
    pub async fn leave(&self) -> Leave {
        self.holder.leave.notified().await;
        if self.holder.asked.load(Ordering::Relaxed) { Leave::AfterAnswer } else { Leave::Now }
    }

    /// Waits until the place is needed and nothing in flight counts any more; after [`Self::leave`].
    pub async fn force(&self) {
        self.holder.force.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.count -= 1;
        if let Some(holders) = taken.by_address.get_mut(&self.address) {
            holders.retain(|holder| !Arc::ptr_eq(holder, &self.holder));
            if holders.is_empty() {
                taken.by_address.remove(&self.address);
            }
        }
        drop(taken);
        self.places.freed.notify_one();
    }
}

/// What counts as one client: an IPv4 address, or a network of IPv6 as one customer has it.
fn counted_as(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    async fn told(place: &Place) -> Option<Leave> {
        tokio::time::timeout(Duration::from_millis(1), place.leave()).await.ok()
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn the_address_with_most_connections_gives_up_its_oldest_idle_one() {
        run(async {
            let places = Places::new(4);
            let busy = places.enter(address(1)).await;
            busy.asked();
            let (idle, newer) = (places.enter(address(1)).await, places.enter(address(1)).await);
            let other = places.enter(address(2)).await;
            let mut waiting = std::pin::pin!(places.enter(address(3)));
            assert!(tokio::time::timeout(Duration::from_millis(1), waiting.as_mut()).await.is_err());
            assert_eq!(told(&idle).await, Some(Leave::Now));
            assert_eq!((told(&newer).await, told(&busy).await, told(&other).await), (None, None, None));
            drop(idle);
            drop(waiting.await);
            drop((busy, newer, other));
            assert_eq!(places.lock().count, 0);
            assert!(places.lock().by_address.is_empty());
        });
    }

    #[test]
    fn requests_in_flight_end_before_their_connection_does() {
        run(async {
            let places = Places::new(2);
            let (one, two) = (places.enter(address(1)).await, places.enter(address(1)).await);
            one.asked();
            two.asked();
            // Of its own address nobody is cut off.
            let own = tokio::time::timeout(GRACE + Duration::from_millis(500), places.enter(address(1))).await;
            assert!(own.is_err());
            assert_eq!((told(&one).await, told(&two).await), (Some(Leave::AfterAnswer), Some(Leave::AfterAnswer)));
            assert!(tokio::time::timeout(Duration::from_millis(1), one.force()).await.is_err());
            let mut waiting = std::pin::pin!(places.enter(address(2)));
            assert!(tokio::time::timeout(Duration::from_millis(1), waiting.as_mut()).await.is_err());
            one.force().await;
            drop(one);
            drop(waiting.await);
        });
    }

    #[test]
    fn a_network_of_one_customer_counts_as_one_client() {
        let of = |text: &str| counted_as(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), address(1));
    }
}
