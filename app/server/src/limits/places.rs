//! Places that clients share, so that a single client can take at most half.

use abreast_hub::Client;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Places that each client may take, also if few are free.
const EACH_MIN: usize = 2;

/// A limited number of places. A client (an address, or a /64 network of IPv6) may take another
/// place while it has fewer than are free: a single client can take half, and the next client half
/// of the rest. Clients behind a proxy that hides their addresses cannot be distinguished: they can
/// take three quarters of all places together.
#[derive(Clone, Debug)]
pub(crate) struct ClientPlaces(Arc<Mutex<Taken>>);

#[derive(Debug)]
struct Taken {
    total: usize,
    count: usize,
    by_client: BTreeMap<IpAddr, usize>,
    /// Waiting clients, in the order of their arrival.
    waiting: VecDeque<(Client, oneshot::Sender<Place>)>,
}

/// A place, which is released on drop.
#[derive(Debug)]
pub(crate) struct Place {
    places: ClientPlaces,
    client: IpAddr,
}

impl Taken {
    fn may_enter(&self, client: &Client) -> bool {
        let free = self.total.saturating_sub(self.count);
        let own = self.by_client.get(&client.group()).copied().unwrap_or(0);
        let is_within_share = match client.address() {
            Some(_) => own < free.max(EACH_MIN),
            None => own < EACH_MIN || free > self.total / 4,
        };
        free > 0 && is_within_share
    }
}

impl ClientPlaces {
    pub(crate) fn new(total: usize) -> Self {
        Self(Arc::new(Mutex::new(Taken {
            total,
            count: 0,
            by_client: BTreeMap::new(),
            waiting: VecDeque::new(),
        })))
    }

    /// Limits the places to at most this number.
    pub(crate) fn limit(&self, most: usize) {
        let mut taken = self.lock();
        taken.total = taken.total.min(most);
    }

    /// Takes a place for a client, if it may have one now.
    pub(crate) fn try_enter(&self, client: &Client) -> Option<Place> {
        self.take(&mut self.lock(), client)
    }

    /// Waits until the client may have a place. Waiting clients get places in the order in which
    /// they came.
    pub(crate) async fn enter(&self, client: &Client) -> Option<Place> {
        let place = {
            let mut taken = self.lock();
            if let Some(place) = self.take(&mut taken, client) {
                return Some(place);
            }
            let (sender, place) = oneshot::channel();
            taken.waiting.push_back((*client, sender));
            place
        };
        // The sender is dropped only after a place was sent.
        place.await.ok()
    }

    /// Number of places in use.
    pub(crate) fn taken(&self) -> usize {
        self.lock().count
    }

    fn take(&self, taken: &mut Taken, client: &Client) -> Option<Place> {
        taken.may_enter(client).then(|| {
            taken.count += 1;
            let client = client.group();
            *taken.by_client.entry(client).or_default() += 1;
            Place { places: self.clone(), client }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let next = {
            let mut taken = self.places.lock();
            taken.count -= 1;
            if let Some(own) = taken.by_client.get_mut(&self.client) {
                *own -= 1;
                if *own == 0 {
                    taken.by_client.remove(&self.client);
                }
            }
            // Remove clients that stopped waiting.
            taken.waiting.retain(|(_, sender)| !sender.is_closed());
            let first = taken.waiting.iter().position(|(client, _)| taken.may_enter(client));
            let next = first.and_then(|at| taken.waiting.remove(at));
            next.and_then(|(client, sender)| Some((sender, self.places.take(&mut taken, &client)?)))
        };
        // If the client left meanwhile, dropping the place gives it to the next one.
        if let Some((sender, place)) = next {
            drop(sender.send(place));
        }
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
                let other = places.enter(&client(2)).await.unwrap();
                let (entered, ()) = tokio::join!(places.enter(&one), async {
                    tokio::task::yield_now().await;
                    own.truncate(1);
                });
                drop((entered, other, own));
                assert_eq!(places.taken(), 0);
            },
        );
    }

    #[test]
    fn clients_behind_a_proxy_leave_places_to_others() {
        let places = ClientPlaces::new(64);
        let hidden = Client::behind(IpAddr::from([192, 0, 2, 1]));
        let taken: Vec<_> = std::iter::from_fn(|| places.try_enter(&hidden)).collect();
        assert_eq!(taken.len(), 48);
        assert!(places.try_enter(&client(2)).is_some());
    }

    #[test]
    fn places_are_given_in_the_order_of_arrival() {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(
            async {
                let places = ClientPlaces::new(2);
                let mut held: Vec<_> = (1..3).map(|n| places.try_enter(&client(n))).collect();
                let order = Mutex::new(Vec::new());
                let wait = async |number: u8| {
                    let place = places.enter(&client(number)).await;
                    order.lock().unwrap().push(number);
                    place
                };
                let left = tokio::time::timeout(std::time::Duration::ZERO, wait(9)).await;
                assert!(left.is_err());
                tokio::join!(
                    async { drop(wait(5).await) },
                    async { drop(wait(3).await) },
                    async { drop(wait(4).await) },
                    async {
                        tokio::task::yield_now().await;
                        drop(held.pop());
                    }
                );
                assert_eq!(*order.lock().unwrap(), [5, 3, 4]);
                drop(held);
                assert_eq!(places.taken(), 0);
            },
        );
    }
}
