//! Requests in flight of each client: an address, or a known client by its signature or token.

use abreast_hub::Client;
use abreast_net::{KnownKeys, PublicKey};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use metrics::{Counter, counter};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Most requests in flight of a client that is not known, unless the configuration has another
/// number.
pub(crate) const REQUESTS_PER_CLIENT: usize = 64;

/// A client that the operator of the server knows.
#[derive(Clone, Debug)]
pub struct KnownClient {
    /// Name in the access log and in metrics.
    pub name: String,
    /// The keys that sign its requests.
    pub keys: Vec<PublicKey>,
    /// The name of its token of the API.
    pub token: Option<String>,
    /// How many times as many requests as an unknown client it may have in flight.
    pub share: usize,
}

/// Limits the requests in flight of each client. Clones share the counts.
///
/// Requests from this machine, and requests through a proxy that does not report the address of its
/// client, are limited only if their client is known: many clients can be behind their address.
#[derive(Clone)]
pub(crate) struct ClientLimits(Arc<Limits>);

struct Limits {
    each: usize,
    known: Vec<Known>,
    keys: KnownKeys,
    tokens: HashMap<String, usize>,
    /// A request in flight occupies a connection, so there are no more entries than connections.
    in_flight: Mutex<HashMap<Group, usize>>,
    refused: Counter,
}

struct Known {
    name: String,
    most: usize,
    requests: Counter,
}

/// What is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Group {
    Address(IpAddr),
    Known(usize),
}

/// A request in flight, which is counted until this is dropped.
#[must_use]
pub(crate) struct ClientRequest(Option<(ClientLimits, Group)>);

impl ClientLimits {
    /// Limits each client to `each` requests in flight, 0 for no limit, and each known client to its
    /// share.
    pub(crate) fn new(each: usize, clients: &[KnownClient]) -> Self {
        let (mut keys, mut tokens) = (KnownKeys::default(), HashMap::new());
        let mut known = Vec::new();
        for (number, client) in clients.iter().enumerate() {
            for key in &client.keys {
                keys.add(key, number);
            }
            tokens.extend(client.token.clone().map(|token| (token, number)));
            let most = each.saturating_mul(client.share);
            let requests =
                counter!("abreast_http_known_requests_total", "client" => client.name.clone());
            known.push(Known { name: client.name.clone(), most, requests });
        }
        let refused = counter!("abreast_http_limited_total");
        Self(Arc::new(Limits { each, known, keys, tokens, in_flight: Mutex::default(), refused }))
    }

    /// The known client of a request, by its signature for the server with this public URL, or by
    /// its token, whose name `token` finds by the secret.
    pub(crate) fn known(
        &self,
        base: &str,
        method: &Method,
        headers: &HeaderMap,
        token: impl FnOnce(&str) -> Option<String>,
    ) -> Option<usize> {
        let Limits { known, keys, tokens: names, .. } = &*self.0;
        if known.is_empty() {
            return None;
        }
        let by_signature = || keys.signer(base, method, headers, SystemTime::now());
        let by_token = || {
            let value = headers.get(AUTHORIZATION).filter(|_| !names.is_empty())?;
            let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
            let name = scheme.eq_ignore_ascii_case("bearer").then(|| token(secret.trim()))??;
            names.get(&name).copied()
        };
        let found = by_signature().or_else(by_token)?;
        known.get(found)?.requests.increment(1);
        Some(found)
    }

    /// The name of a known client.
    pub(crate) fn name(&self, known: usize) -> Option<&str> {
        self.0.known.get(known).map(|known| &*known.name)
    }

    /// Counts a request, unless its client has as many in flight as it may have.
    pub(crate) fn enter(&self, client: &Client, known: Option<usize>) -> Option<ClientRequest> {
        let limits = &*self.0;
        let (group, most) = match known.and_then(|at| Some((at, limits.known.get(at)?))) {
            Some((at, known)) => (Group::Known(at), known.most),
            None if client.is_local() || client.address().is_none() => {
                return Some(ClientRequest(None));
            }
            None => (Group::Address(client.group()), limits.each),
        };
        if most == 0 {
            return Some(ClientRequest(None));
        }
        let mut in_flight = self.lock();
        let own = in_flight.entry(group).or_default();
        if *own >= most {
            limits.refused.increment(1);
            return None;
        }
        *own += 1;
        Some(ClientRequest(Some((self.clone(), group))))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Group, usize>> {
        self.0.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientRequest {
    /// A request that does not count.
    pub(crate) const fn uncounted() -> Self {
        Self(None)
    }
}

impl Drop for ClientRequest {
    fn drop(&mut self) {
        let Some((limits, group)) = self.0.take() else { return };
        let mut in_flight = limits.lock();
        if let Some(own) = in_flight.get_mut(&group) {
            *own -= 1;
            if *own == 0 {
                in_flight.remove(&group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> Client {
        Client::reported(address.parse().unwrap())
    }

    fn known(share: usize) -> KnownClient {
        KnownClient { name: "europeana".into(), keys: Vec::new(), token: None, share }
    }

    #[test]
    fn each_client_has_its_own_number_of_requests() {
        let limits = ClientLimits::new(2, &[known(2)]);
        let (one, other) = (client("192.0.2.1"), client("192.0.2.2"));
        let held = [limits.enter(&one, None).unwrap(), limits.enter(&one, None).unwrap()];
        assert!(limits.enter(&one, None).is_none());
        assert!(limits.enter(&other, None).is_some());
        // A known client is counted by its name, wherever it is.
        let more: Vec<_> = (0..4).map(|_| limits.enter(&one, Some(0)).unwrap()).collect();
        assert!(limits.enter(&other, Some(0)).is_none());
        drop(held);
        assert!(limits.enter(&one, None).is_some());
        assert_eq!(limits.lock().len(), 1);
        drop(more);
        assert!(limits.lock().is_empty());
    }

    #[test]
    fn a_network_of_one_customer_is_one_client() {
        let limits = ClientLimits::new(1, &[]);
        let held = limits.enter(&client("2001:db8:1:2::1"), None);
        assert!(held.is_some());
        assert!(limits.enter(&client("2001:db8:1:2:ffff::9"), None).is_none());
        assert!(limits.enter(&client("2001:db8:1:3::1"), None).is_some());
    }

    #[test]
    fn clients_without_an_address_of_their_own_are_not_limited() {
        let address = "127.0.0.1".parse().unwrap();
        for client in [Client::local(address), Client::behind(address)] {
            let limits = ClientLimits::new(1, &[]);
            let held: Vec<_> = (0..3).map(|_| limits.enter(&client, None)).collect();
            assert!(held.iter().all(Option::is_some), "{client}");
        }
        let unlimited = ClientLimits::new(0, &[known(10)]);
        let held: Vec<_> = (0..200)
            .map(|number| unlimited.enter(&client("192.0.2.1"), (number % 2 == 0).then_some(0)))
            .collect();
        assert!(held.iter().all(Option::is_some));
    }
}
