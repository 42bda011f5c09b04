//! Places that clients share: one client alone leaves as many free as it takes.

use abreast_hub::Client;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Places that each client may take, however few are free.
const EACH_MIN: usize = 2;

/// A number of places. A client (an address, or a /64 network of IPv6) may take another place while fewer are taken by
/// it than are free: alone it takes half of all, and the next client half of the rest.
#[derive(Debug)]
pub(crate) struct ClientPlaces {
    total: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug)]
struct Taken {
    count: usize,
    by_client: BTreeMap<IpAddr, usize>,
}

/// A place, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'p> {
    places: &'p ClientPlaces,
    client: IpAddr,
}

impl ClientPlaces {
    pub(crate) const fn new(total: usize) -> Self {
        let taken = Taken { count: 0, by_client: BTreeMap::new() };
        Self { total, taken: Mutex::new(taken), freed: Notify::const_new() }
    }

    /// A place for a client, if it may have one now.
    pub(crate) fn try_enter(&self, client: &Client) -> Option<Place<'_>> {
        let client = client.group();
        let mut taken = self.lock();
        let free = self.total.saturating_sub(taken.count);
        let own = taken.by_client.get(&client).copied().unwrap_or(0);
        if free == 0 || own >= free.max(EACH_MIN) {
            return None;
        }
        taken.count += 1;
        *taken.by_client.entry(client).or_default() += 1;
        Some(Place { places: self, client })
    }

    /// A place for a client, as soon as it may have one.
    pub(crate) async fn enter(&self, client: &Client) -> Place<'_> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(place) = self.try_enter(client) {
                return place;
            }
            freed.await;
        }
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.lock().count
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.count -= 1;
        if let Some(own) = taken.by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.by_client.remove(&self.client);
            }
        }
        drop(taken);
        self.places.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Client {
        Client::direct(IpAddr::from([192, 0, 2, number]))
    }

    #[test]
    fn one_client_never_takes_all_places() {
        let places = ClientPlaces::new(64);
        let take_all = |number: u8| {
            std::iter::from_fn(|| places.try_enter(&client(number))).collect::<Vec<_>>()
        };
        let (one, two, three) = (take_all(1), take_all(2), take_all(3));
        assert_eq!([one.len(), two.len(), three.len()], [32, 16, 8]);
        let many: Vec<_> = (4..20).map(take_all).collect();
        assert!(many.iter().take(3).all(|taken| !taken.is_empty()));
        assert!(places.taken() <= 64);
        drop((one, two, three, many));
        assert_eq!(places.taken(), 0);
        assert!(places.lock().by_client.is_empty());
    }

    #[test]
    fn a_client_waits_for_its_own_places_alone() {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(
            async {
                let places = ClientPlaces::new(8);
                let mut own: Vec<_> = std::iter::from_fn(|| places.try_enter(&client(1))).collect();
                let (one, waits) = (client(1), std::time::Duration::from_millis(20));
                assert!(tokio::time::timeout(waits, places.enter(&client(1))).await.is_err());
                let other = places.enter(&client(2)).await;
                let (entered, ()) = tokio::join!(places.enter(&one), async {
                    tokio::task::yield_now().await;
                    own.truncate(1);
                });
                drop((entered, other, own));
                assert_eq!(places.taken(), 0);
            },
        );
    }
}
