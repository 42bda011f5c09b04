//! Hosts that may receive requests.

use crate::fetch::is_url;
use crate::report::Options;
use abreast_webtypes::Origin;
use std::collections::HashSet;

/// Hosts that may receive requests: the hosts of the starts, and allowed hosts.
pub(crate) struct Hosts {
    origins: HashSet<Origin>,
    names: HashSet<String>,
}

impl Hosts {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            origins: options.starts.iter().filter_map(|start| Origin::of(start)).collect(),
            names: options.allow_hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        }
    }

    pub(crate) fn may(&self, url: &str) -> bool {
        is_url(url)
            && Origin::of(url).is_some_and(|origin| {
                self.origins.contains(&origin)
                    || self.names.contains(&origin.host)
                    || self.names.contains(&format!("{}:{}", origin.host, origin.port))
            })
    }
}
