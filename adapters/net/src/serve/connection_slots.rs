//! Limit on a server's connections. When all places are taken, the client address with the most
//! connections has to close one, and the waiting address with the fewest connections gets the
//! place.
//!
//! The oldest idle connection of that address is closed. Requests in flight end first, unless the
//! address has more than an eighth of all places, and more than twice as many as a waiting address:
//! then its oldest connection is aborted, with its requests. While places are free, addresses are not
//! limited, because all clients behind a proxy have the same address.
//!
//! A connection of HTTP/2 takes a further place for each request beyond the first. If no place is
//! free, the request waits for a short time, and idle connections are closed; then it is refused.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

/// Interval at which further connections are asked to close while a client waits.
const STEP: Duration = Duration::from_millis(20);
/// Time that a connection has to complete its request after it was asked to close, if its address
/// has too many connections.
const GRACE: Duration = Duration::from_millis(200);
/// Longest time that a further request on a connection waits for a place.
const WAIT_MAX: Duration = Duration::from_millis(500);
/// An address has too many connections if it has more than one part in this number of all places,
/// and others wait.
const SHARE: usize = 8;

/// The connection places of a server.
#[derive(Debug)]
pub struct ConnectionSlots {
    total: usize,
    taken: Mutex<SlotsInUse>,
}

#[derive(Debug, Default)]
struct SlotsInUse {
    count: usize,
    /// Connections by client address, the oldest first.
    by_address: HashMap<IpAddr, VecDeque<Arc<SlotHolder>>>,
    /// Waiting clients in the order of their arrival.
    waiting: VecDeque<(IpAddr, oneshot::Sender<ConnectionSlot>)>,
}

#[derive(Debug, Default)]
struct SlotHolder {
    /// Requests so far.
    requests: AtomicUsize,
    /// Requests without a complete response.
    in_flight: AtomicUsize,
    /// Further places for requests that are in flight at the same time; changed under the lock only.
    further: AtomicUsize,
    /// Whether requests that begin now are refused.
    refuses: AtomicBool,
    /// The client does not read the response.
    is_blocked: AtomicBool,
    /// Time at which the connection was asked to close.
    asked_to_close: Mutex<Option<Instant>>,
    leave: Notify,
    is_forced: AtomicBool,
    force: Notify,
}

/// A place for a connection, released on drop.
#[derive(Debug)]
pub struct ConnectionSlot {
    connection_slots: Arc<ConnectionSlots>,
    address: IpAddr,
    holder: Arc<SlotHolder>,
}

/// A request in flight on a connection, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct InFlight {
    connection_slots: Arc<ConnectionSlots>,
    holder: Arc<SlotHolder>,
    place: RequestPlace,
}

/// The place of a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPlace {
    /// The place of its connection.
    OfConnection,
    /// None yet; the request needs a further place.
    None,
    Further,
}

impl InFlight {
    /// Takes a place for the request, unless it has the place of its connection. Returns false if none
    /// is free within half a second, or the connection takes no further requests.
    pub async fn take_place(&mut self) -> bool {
        if self.holder.refuses.load(Ordering::Relaxed) {
            return false;
        }
        if self.place != RequestPlace::None {
            return true;
        }
        let begun = Instant::now();
        loop {
            {
                let mut taken = self.connection_slots.lock();
                if taken.count < self.connection_slots.total {
                    taken.count += 1;
                    self.holder.further.fetch_add(1, Ordering::Relaxed);
                    self.place = RequestPlace::Further;
                    return true;
                }
                taken.close_idle();
            }
            if begun.elapsed() >= WAIT_MAX {
                return false;
            }
            tokio::time::sleep(STEP).await;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.holder.in_flight.fetch_sub(1, Ordering::Relaxed);
        if self.place == RequestPlace::Further {
            self.connection_slots.free(|_| {
                self.holder.further.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

/// Reports from the stream of a connection whether its writes are blocked.
#[derive(Debug)]
pub struct Writes(Arc<SlotHolder>);

impl Writes {
    /// Reports that some bytes could not be written yet.
    pub fn blocked(&self) {
        self.0.is_blocked.store(true, Ordering::Relaxed);
    }

    /// Reports that all bytes of the response were written.
    pub fn flushed(&self) {
        self.0.is_blocked.store(false, Ordering::Relaxed);
    }
}

/// The time at which a connection that was asked to close must do so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseWhen {
    /// At once, because the connection was not used.
    Now,
    /// After the response in flight; at once for an idle connection.
    AfterAnswer,
}

impl ConnectionSlots {
    /// Places for at most this number of connections, at least one.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total: total.max(1), taken: Mutex::default() })
    }

    /// Most clients that may wait for a place.
    pub fn waiting_max(&self) -> usize {
        (self.total / 32).clamp(8, 64)
    }

    /// A place for a connection from this address, if one is free.
    pub fn try_enter(self: &Arc<Self>, client: IpAddr) -> Option<ConnectionSlot> {
        let mut taken = self.lock();
        (taken.count < self.total).then(|| self.take(&mut taken, client_group(client)))
    }

    /// Waits for a place for a connection from this address.
    pub async fn enter(self: &Arc<Self>, client: IpAddr) -> ConnectionSlot {
        let address = client_group(client);
        loop {
            let mut given = {
                let mut taken = self.lock();
                if taken.count < self.total {
                    return self.take(&mut taken, address);
                }
                let (sender, given) = oneshot::channel();
                taken.waiting.push_back((address, sender));
                given
            };
            loop {
                self.make_room(&self.lock(), address);
                match tokio::time::timeout(STEP, &mut given).await {
                    Ok(Ok(slot)) => return slot,
                    Ok(Err(_)) => break,
                    Err(_) => {}
                }
            }
        }
    }

    /// Whether a new connection may wait, although `waiting` connections, half of the allowed
    /// number, wait already. Returns false if its address has too many places, unless more than
    /// `waiting` of these are idle and can be closed at once.
    pub fn may_wait(&self, client: IpAddr, waiting: usize) -> bool {
        let taken = self.lock();
        taken.by_address.get(&client_group(client)).is_none_or(|holders| {
            let idle = || holders.iter().filter(|one| !one.is_in_flight()).count();
            places(holders) * SHARE <= self.total || idle() > waiting
        })
    }

    fn take(self: &Arc<Self>, taken: &mut SlotsInUse, address: IpAddr) -> ConnectionSlot {
        taken.count += 1;
        let holder = Arc::new(SlotHolder::default());
        taken.by_address.entry(address).or_default().push_back(Arc::clone(&holder));
        ConnectionSlot { connection_slots: Arc::clone(self), address, holder }
    }

    /// Frees a place and gives it to the waiting address with the fewest places. `leave` removes the
    /// place from its holder.
    fn free(self: &Arc<Self>, leave: impl FnOnce(&mut SlotsInUse)) {
        let next = {
            let mut taken = self.lock();
            taken.count -= 1;
            leave(&mut taken);
            // Remove clients that stopped waiting.
            taken.waiting.retain(|(_, sender)| !sender.is_closed());
            let of = |address| taken.by_address.get(address).map_or(0, places);
            let first =
                taken.waiting.iter().enumerate().min_by_key(|(_, (address, _))| of(address));
            let first = first.map(|(at, _)| at);
            let next = first.and_then(|at| taken.waiting.remove(at));
            next.map(|(address, sender)| (sender, self.take(&mut taken, address)))
        };
        // If the client left meanwhile, dropping the place gives it to the next one.
        if let Some((sender, slot)) = next {
            drop(sender.send(slot));
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotsInUse> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a connection to close, or aborts the requests of a connection that was asked before.
    fn make_room(&self, taken: &SlotsInUse, newcomer: IpAddr) {
        if taken.close_idle() {
            return;
        }
        let Some(holders) = taken.holders_of_most() else { return };
        let now = Instant::now();
        let not_asked = || holders.iter().filter(|holder| holder.asked_to_close().is_none());
        let own = taken.by_address.get(&newcomer).map_or(0, places);
        let has_too_many = places(holders) * SHARE > self.total && places(holders) > own * 2;
        let asked_before = |holder: &&Arc<SlotHolder>| {
            let asked = holder.asked_to_close();
            asked.is_some_and(|asked| now.duration_since(asked) >= GRACE)
                && !holder.is_forced.load(Ordering::Relaxed)
        };
        if has_too_many && let Some(holder) = holders.iter().find(asked_before) {
            holder.is_forced.store(true, Ordering::Relaxed);
            holder.force.notify_one();
        } else if let Some(holder) = not_asked().next() {
            holder.ask_to_close(now);
        }
    }
}

impl SlotsInUse {
    /// The connections of the address with the most places.
    fn holders_of_most(&self) -> Option<&VecDeque<Arc<SlotHolder>>> {
        // If several addresses have the most, choose one whose oldest connection was not asked yet.
        let (_, holders) = self.by_address.iter().max_by_key(|(_, holders)| {
            let oldest = holders.front();
            (places(holders), oldest.is_some_and(|oldest| oldest.asked_to_close().is_none()))
        })?;
        Some(holders)
    }

    /// Asks an idle connection of the address with the most places to close, if it has one.
    fn close_idle(&self) -> bool {
        let Some(holders) = self.holders_of_most() else { return false };
        let not_asked = || holders.iter().filter(|holder| holder.asked_to_close().is_none());
        // Close connections without any request before idle connections that had requests.
        let idle = not_asked()
            .find(|holder| holder.requests.load(Ordering::Relaxed) == 0)
            .or_else(|| not_asked().find(|holder| !holder.is_in_flight()));
        if let Some(holder) = idle {
            holder.ask_to_close(Instant::now());
        }
        idle.is_some()
    }
}

/// The places of the connections of an address.
fn places(holders: &VecDeque<Arc<SlotHolder>>) -> usize {
    holders.iter().map(|holder| 1 + holder.further.load(Ordering::Relaxed)).sum()
}

impl SlotHolder {
    fn is_in_flight(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0 || self.is_blocked.load(Ordering::Relaxed)
    }

    fn asked_to_close(&self) -> Option<Instant> {
        *self.asked_to_close.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask_to_close(&self, now: Instant) {
        *self.asked_to_close.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.leave.notify_one();
    }
}

impl ConnectionSlot {
    /// Counts a request on this connection, which is in flight until the returned value is dropped.
    /// Where others may be in flight, [`InFlight::take_place`] takes its place.
    pub fn asked(&self) -> InFlight {
        let (connection_slots, holder) =
            (Arc::clone(&self.connection_slots), Arc::clone(&self.holder));
        holder.requests.fetch_add(1, Ordering::Relaxed);
        let is_first = holder.in_flight.fetch_add(1, Ordering::Relaxed) == 0;
        let place = if is_first { RequestPlace::OfConnection } else { RequestPlace::None };
        InFlight { connection_slots, holder, place }
    }

    /// Refuses requests that begin from now on.
    pub fn refuse_requests(&self) {
        self.holder.refuses.store(true, Ordering::Relaxed);
    }

    /// Number of requests so far.
    pub fn requests(&self) -> usize {
        self.holder.requests.load(Ordering::Relaxed)
    }

    /// Returns the reporter for the stream of this connection.
    pub fn writes(&self) -> Writes {
        Writes(Arc::clone(&self.holder))
    }

    /// Whether a response on this connection is incomplete or not completely written.
    pub fn is_in_flight(&self) -> bool {
        self.holder.is_in_flight()
    }

    /// Waits until the connection has to give its place to another client.
    pub async fn leave(&self) -> CloseWhen {
        self.holder.leave.notified().await;
        if self.requests() == 0 { CloseWhen::Now } else { CloseWhen::AfterAnswer }
    }

    /// Waits until the connection must close even with a request in flight; call it after
    /// [`Self::leave`].
    pub async fn force(&self) {
        self.holder.force.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connection_slots.free(|taken| {
            if let Some(holders) = taken.by_address.get_mut(&self.address) {
                holders.retain(|holder| !Arc::ptr_eq(holder, &self.holder));
                if holders.is_empty() {
                    taken.by_address.remove(&self.address);
                }
            }
        });
    }
}

/// The unit that counts as one client in every limit: an IPv4 address, or the /64 network of an
/// IPv6 address, because a customer usually has a whole /64.
///
/// # Examples
/// ```
/// use abreast_net::client_group;
/// use std::net::IpAddr;
///
/// let group = |address: &str| address.parse::<IpAddr>().map(client_group);
/// assert_eq!(group("2001:db8:1:2:aaaa::1")?, group("2001:db8:1:2:bbbb::2")?);
/// assert_ne!(group("192.0.2.1")?, group("192.0.2.2")?);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn client_group(client: IpAddr) -> IpAddr {
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
    use tokio::task::JoinSet;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    async fn asked_to_close(place: &ConnectionSlot) -> Option<CloseWhen> {
        tokio::time::timeout(Duration::from_millis(1), place.leave()).await.ok()
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn the_busiest_address_loses_its_oldest_idle_connection() {
        run(async {
            let connection_slots = ConnectionSlots::new(4);
            let busy = connection_slots.enter(address(1)).await;
            drop(busy.asked());
            let (idle, newer) = (
                connection_slots.enter(address(1)).await,
                connection_slots.enter(address(1)).await,
            );
            let other = connection_slots.enter(address(2)).await;
            let mut waiting = std::pin::pin!(connection_slots.enter(address(3)));
            assert!(
                tokio::time::timeout(Duration::from_millis(1), waiting.as_mut()).await.is_err()
            );
            assert_eq!(asked_to_close(&idle).await, Some(CloseWhen::Now));
            assert_eq!(
                (
                    asked_to_close(&newer).await,
                    asked_to_close(&busy).await,
                    asked_to_close(&other).await
                ),
                (None, None, None)
            );
            drop(idle);
            drop(waiting.await);
            drop((busy, newer, other));
            assert_eq!(connection_slots.lock().count, 0);
            assert!(connection_slots.lock().by_address.is_empty());
        });
    }

    #[test]
    fn requests_in_flight_end_before_their_connection_does() {
        run(async {
            let connection_slots = ConnectionSlots::new(2);
            let (one, two) = (
                connection_slots.enter(address(1)).await,
                connection_slots.enter(address(1)).await,
            );
            drop(one.asked());
            drop(two.asked());
            // Of its own address nobody is cut off.
            let own = tokio::time::timeout(
                GRACE + Duration::from_millis(500),
                connection_slots.enter(address(1)),
            )
            .await;
            assert!(own.is_err());
            assert_eq!(
                (asked_to_close(&one).await, asked_to_close(&two).await),
                (Some(CloseWhen::AfterAnswer), Some(CloseWhen::AfterAnswer))
            );
            assert!(tokio::time::timeout(Duration::from_millis(1), one.force()).await.is_err());
            let mut waiting = std::pin::pin!(connection_slots.enter(address(2)));
            assert!(
                tokio::time::timeout(Duration::from_millis(1), waiting.as_mut()).await.is_err()
            );
            one.force().await;
            drop(one);
            drop(waiting.await);
        });
    }

    #[test]
    fn requests_at_the_same_time_take_further_places() {
        run(async {
            let connection_slots = ConnectionSlots::new(4);
            let place = connection_slots.enter(address(1)).await;
            let (mut first, mut second, mut third) = (place.asked(), place.asked(), place.asked());
            assert!(first.take_place().await && second.take_place().await);
            assert!(third.take_place().await);
            let other = connection_slots.enter(address(2)).await;
            let mut of_other = other.asked();
            assert!(of_other.take_place().await, "the first request of a connection has its place");
            assert!(!place.asked().take_place().await, "no place is free");
            assert!(connection_slots.try_enter(address(3)).is_none());
            let mut waiting = std::pin::pin!(connection_slots.enter(address(3)));
            assert!(
                tokio::time::timeout(Duration::from_millis(1), waiting.as_mut()).await.is_err()
            );
            // The address has three places with one connection.
            assert_eq!(asked_to_close(&place).await, Some(CloseWhen::AfterAnswer));
            assert_eq!(asked_to_close(&other).await, None);
            drop(second);
            let newcomer = waiting.await;
            drop(of_other);
            place.refuse_requests();
            assert!(!place.asked().take_place().await);
            drop((place, newcomer, first, other));
            assert_eq!(connection_slots.lock().count, 1, "a request that outlives its connection");
            drop(third);
            assert_eq!(connection_slots.lock().count, 0);
            assert!(connection_slots.lock().by_address.is_empty());
        });
    }

    #[test]
    fn an_address_that_has_too_many_makes_room_at_once() {
        // One that has all, and two that have half of all each.
        for greedy in [1, 2] {
            run(async {
                let connection_slots = ConnectionSlots::new(64);
                let mut held = Vec::new();
                let mut ends = JoinSet::new();
                for number in 0..64 {
                    let place = connection_slots.enter(address(number % greedy)).await;
                    let in_flight = place.asked();
                    // A request that waits for long, as `serve_until` treats it.
                    ends.spawn(async move {
                        place.leave().await;
                        place.force().await;
                        drop((place, in_flight));
                    });
                }
                // Its own newcomers wait, and get nothing before others do.
                let mut own = JoinSet::new();
                for _ in 0..8 {
                    let connection_slots = Arc::clone(&connection_slots);
                    own.spawn(async move { connection_slots.enter(address(0)).await });
                }
                tokio::time::sleep(STEP).await;
                assert!(!connection_slots.may_wait(address(0), 0));
                for last in 100..116 {
                    let begun = Instant::now();
                    held.push(connection_slots.enter(address(last)).await);
                    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
                }
                assert!(connection_slots.may_wait(address(100), 8));
                assert!(own.try_join_next().is_none());
            });
        }
    }

    #[test]
    fn newcomers_that_send_late_leave_half_of_the_waiting_to_others() {
        run(async {
            let connection_slots = ConnectionSlots::new(64);
            assert_eq!(connection_slots.waiting_max(), 8);
            let (mut held, mut requests) = (Vec::new(), Vec::new());
            for number in 0..64 {
                let place = connection_slots.enter(address(0)).await;
                // The last one has sent nothing yet.
                requests.extend((number < 63).then(|| place.asked()));
                held.push(place);
            }
            assert!(connection_slots.may_wait(address(0), 0), "one place becomes free at once");
            for waiting in 1..8 {
                assert!(!connection_slots.may_wait(address(0), waiting), "{waiting}");
                assert!(connection_slots.may_wait(address(1), waiting), "{waiting}");
            }
            drop((requests, held));
        });
    }

    #[test]
    fn a_network_of_one_customer_counts_as_one_client() {
        let of = |text: &str| client_group(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), address(1));
    }
}
