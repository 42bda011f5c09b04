//! Machines of a network that this machine imitates: network namespaces of Linux behind one bridge,
//! whose links can be cut.

use crate::{run, skipped};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

/// The network. It is removed when it is dropped; the programs in it must have ended before.
pub struct Network {
    bridge: String,
    places: Vec<Place>,
}

/// A machine of the network.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name of the namespace, and of the end of the link at the bridge.
    name: String,
    address: Ipv4Addr,
}

/// The end of a link.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// At the machine, whose system calls fail at once.
    Machine,
    /// At the bridge: the machine sends, and nothing arrives.
    Bridge,
}

impl Network {
    /// Makes a network with this many machines. Without root or the program `ip`, the test is counted
    /// as skipped.
    pub fn start(test: &str, machines: u8) -> Option<Self> {
        let pid = std::process::id();
        let bridge = format!("abr{pid}");
        let add = Command::new("ip").args(["link", "add", &bridge, "type", "bridge"]).output();
        if !add.is_ok_and(|output| output.status.success()) {
            skipped(test, "network namespaces need root and the program `ip` (package iproute2)");
            return None;
        }
        let subnet = [10, (128 + pid % 64) as u8, (pid / 64 % 256) as u8];
        let address = |host| Ipv4Addr::new(subnet[0], subnet[1], subnet[2], host);
        let mut network = Self { bridge, places: Vec::new() };
        ip(&format!("address add {}/24 dev {}", address(1), network.bridge));
        ip(&format!("link set {} up", network.bridge));
        for number in 0..machines {
            let place = Place { name: format!("ab{pid}x{number}"), address: address(number + 2) };
            let Place { name, address } = &place;
            ip(&format!("netns add {name}"));
            network.places.push(place.clone());
            ip(&format!("link add {name} type veth peer name eth0 netns {name}"));
            ip(&format!("link set {name} master {} up", network.bridge));
            ip(&format!("-n {name} address add {address}/24 dev eth0"));
            for device in ["lo", "eth0"] {
                ip(&format!("-n {name} link set {device} up"));
            }
        }
        Some(network)
    }

    /// A machine, by its number from 0.
    pub fn place(&self, number: usize) -> &Place {
        &self.places[number]
    }

    /// Cuts the link of a machine, or repairs the link.
    pub fn cut(&self, number: usize, end: End, is_cut: bool) {
        let (name, state) = (&self.places[number].name, if is_cut { "down" } else { "up" });
        match end {
            End::Machine => ip(&format!("-n {name} link set eth0 {state}")),
            End::Bridge => ip(&format!("link set {name} {state}")),
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let remove = |words: &[&str]| {
            let removed = run(Command::new("ip").args(words));
            let failed = !removed.status.success() && !std::thread::panicking();
            assert!(!failed, "{words:?}: {}", String::from_utf8_lossy(&removed.stderr));
        };
        for place in &self.places {
            // A namespace lives as long as its last connection; the link is removed at once.
            remove(&["link", "delete", &place.name]);
            remove(&["netns", "delete", &place.name]);
        }
        remove(&["link", "delete", &self.bridge]);
    }
}

impl Place {
    /// The address of a port of the machine.
    pub fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip(), port)
    }

    /// The address of the machine.
    pub const fn ip(&self) -> IpAddr {
        IpAddr::V4(self.address)
    }

    /// A command on this machine, with the program, arguments, variables and folder of another one, by
    /// default as the same user.
    pub fn command(&self, of: &Command, user: Option<(u32, u32)>) -> Command {
        let mut command = Command::new("nsenter");
        let namespace: PathBuf = ["/run/netns", &self.name].iter().collect();
        command.arg(format!("--net={}", namespace.display()));
        if let Some((user, group)) = user {
            command.args([format!("--setuid={user}"), format!("--setgid={group}")]);
        }
        command.arg("--").arg(of.get_program()).args(of.get_args());
        for (name, value) in of.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = of.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }
}

fn ip(words: &str) {
    let output = run(Command::new("ip").args(words.split(' ')));
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}
