//! The host of a topic: clients that publish from there do not need a token.

use crate::message::client::Client;
use abreast_net::{Error, Sender};
use std::net::{IpAddr, UdpSocket};

/// The host of a topic.
#[derive(Clone, Debug)]
pub(crate) struct TopicHost {
    addresses: Vec<IpAddr>,
    /// Whether the URL has `localhost` or a loopback address: then each client on this machine is
    /// on the topic's host.
    is_loopback: bool,
    /// Addresses of this hub's host. A proxy in front of the hub has such an address, and may
    /// forward requests without marking them.
    of_hub: Vec<IpAddr>,
}

impl TopicHost {
    /// The host of the topic at `url`, for the hub at `hub`.
    pub(crate) async fn resolve(sender: &Sender, url: &str, hub: &str) -> Result<Self, Error> {
        let is_loopback = is_loopback(sender.recipient(url)?.host());
        let addresses = addresses(sender, url).await?;
        let of_hub = if is_loopback {
            Vec::new()
        } else {
            // If the hub's host is unknown, any address may be its proxy's.
            self::addresses(sender, hub).await.unwrap_or_else(|_| addresses.clone())
        };
        Ok(Self { addresses, is_loopback, of_hub })
    }

    /// Whether a client's address is one of the host's.
    pub(crate) fn has(&self, client: Client) -> bool {
        client.address().is_some_and(|address| {
            if !self.addresses.contains(&address) {
                return false;
            }
            let may_be_proxy = || {
                client.is_local() || self.of_hub.contains(&address) || is_of_this_machine(address)
            };
            // A trusted proxy reports the client's address.
            self.is_loopback || client.is_forwarded() || !may_be_proxy()
        })
    }
}

/// Whether an address is on this machine: only then can it be bound.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Whether a host in a URL means this machine.
fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// The addresses of the host of a URL.
async fn addresses(sender: &Sender, url: &str) -> Result<Vec<IpAddr>, Error> {
    let found = sender.addresses(&sender.recipient(url)?).await?;
    Ok(found.into_iter().map(|address| address.to_canonical()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_may_be_a_proxys_is_no_topics_host() {
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let host = |is_loopback, topic: IpAddr, hub: &[IpAddr]| TopicHost {
            addresses: vec![topic],
            is_loopback,
            of_hub: hub.to_vec(),
        };
        for (host, client, is_it) in [
            // The topic is on a machine of its own.
            (host(false, address(1), &[address(9)]), Client::direct(address(1)), true),
            (host(false, address(1), &[address(9)]), Client::direct(address(2)), false),
            (host(false, address(1), &[address(9)]), Client::behind(address(1)), false),
            (host(false, address(1), &[address(9)]), Client::reported(address(1)), true),
            // A proxy on this machine, by its public address and by loopback.
            (host(false, address(9), &[]), Client::local(address(9)), false),
            (host(false, loopback, &[]), Client::local(loopback), false),
            // By another address of this machine than the one that was connected to.
            (host(false, loopback, &[]), Client::direct(loopback), false),
            // A proxy on another machine, in front of hub and topic.
            (host(false, address(9), &[address(9)]), Client::direct(address(9)), false),
            (host(false, address(9), &[address(9)]), Client::reported(address(9)), true),
            // All on one machine, by its own account.
            (host(true, loopback, &[]), Client::local(loopback), true),
            (host(true, loopback, &[]), Client::behind(loopback), false),
        ] {
            assert_eq!(host.has(client), is_it, "{host:?} {client:?}");
        }
        for (host, written) in [
            ("localhost", true),
            ("127.0.0.7", true),
            ("::1", true),
            ("localhost.example", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(is_loopback(host), written, "{host}");
        }
    }
}
