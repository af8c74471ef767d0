//! How many connections there may be at once: in all, so that files can still be opened, and from one network, so that
//! none of them can take all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use app::domain::network::Network;
use ipnet::IpNet;
use nix::sys::resource::{Resource, getrlimit};

use crate::cli::ServerArgs;
use crate::cli::limits::LimitArgs;

/// So many open files are for the database, logs and whatever else is not a connection, and one of sixteen beyond them:
/// uploads and downloads open a file each.
const RESERVED: u64 = 128;
/// Fewer connections than this are few for a fleet.
const FEW: usize = 4_000;

/// See the module.
pub struct Connections {
    most: usize,
    most_of_network: usize,
    trusted: Vec<IpNet>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    of: HashMap<Network, usize>,
    refused: u64,
}

/// A connection that was let in; it counts until this is dropped.
pub struct Admitted {
    connections: Arc<Connections>,
    network: Option<Network>,
}

impl Connections {
    /// As many as the flags allow, or as there is room for.
    pub fn of(args: &ServerArgs) -> Self {
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(now, _)| now);
        let LimitArgs { max_connections, max_connections_per_network, .. } = args.limits;
        Self::within(files, max_connections, max_connections_per_network, args.edge.trusted_proxies.clone())
    }

    /// So many in all and of one network; whom trusted proxies speak for is not seen here, so they count for none.
    pub fn new(most: usize, most_of_network: usize, trusted: Vec<IpNet>) -> Self {
        Self { most, most_of_network, trusted, open: Mutex::default() }
    }

    /// As many as were asked for, or as this process may have files open; and seven eighths of them from one network.
    pub fn within(files: u64, most: Option<usize>, of_network: Option<usize>, trusted: Vec<IpNet>) -> Self {
        let room = usize::try_from(files.saturating_sub(RESERVED) / 16 * 15).unwrap_or(usize::MAX).max(16);
        let most = most.filter(|most| *most > 0).unwrap_or(room);
        if most > room {
            tracing::warn!(
                most,
                room,
                files,
                "more connections are allowed than files may be open: raise that limit (ulimit -n, LimitNOFILE)"
            );
        } else if most < FEW {
            tracing::warn!(
                most,
                files,
                "few connections have room; raise the limit of open files for a large fleet (ulimit -n, LimitNOFILE)"
            );
        }
        let of_network = of_network.filter(|of_network| *of_network > 0).unwrap_or(most / 8 * 7);
        tracing::info!(most, of_network, files, "connections at once");
        Self::new(most, of_network, trusted)
    }

    /// Lets a connection in, if there is room for it.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Admitted> {
        let peer = peer.to_canonical();
        let stranger = !self.trusted.iter().any(|proxy| proxy.contains(&peer));
        let network = stranger.then(|| Network::of_stranger(peer));
        let mut open = self.open.lock().expect("no panic while it is held");
        let of_network = network.and_then(|network| open.of.get(&network)).copied().unwrap_or_default();
        if open.all >= self.most || of_network >= self.most_of_network {
            open.refused += 1;
            // Said when it begins, and ever more seldom.
            if open.refused.is_power_of_two() {
                tracing::warn!(host = %peer, open = open.all, of_network, refused = open.refused, "too many connections; this one is closed");
            }
            return None;
        }
        open.all += 1;
        if let Some(network) = network {
            *open.of.entry(network).or_default() += 1;
        }
        drop(open);
        Some(Admitted { connections: Arc::clone(self), network })
    }

    /// How many are open, and how many were closed because there was no room.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the figures of the server, which are to be exported"))]
    pub fn count(&self) -> (usize, u64) {
        let open = self.open.lock().expect("no panic while it is held");
        (open.all, open.refused)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().expect("no panic while it is held");
        open.all -= 1;
        if let Some(network) = self.network
            && let Some(number) = open.of.get_mut(&network)
        {
            *number -= 1;
            if *number == 0 {
                open.of.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn there_is_room_for_so_many_in_all_and_of_a_network() {
        let connections = Arc::new(Connections::new(4, 2, vec!["10.0.0.0/8".parse().expect("a network")]));
        let admit = |text: &str| connections.admit(host(text));
        let (one, two) = (admit("2001:db8::1"), admit("2001:db8::2"));
        assert!(one.is_some() && two.is_some() && admit("2001:db8::3").is_none(), "a network's share");
        let proxied = [admit("10.0.0.1"), admit("10.0.0.1")];
        assert!(proxied.iter().all(Option::is_some) && admit("192.0.2.1").is_none(), "all are taken");
        assert_eq!(connections.count(), (4, 2));
        drop((one, proxied));
        assert!(admit("2001:db8::3").is_some() && admit("10.0.0.1").is_some());
        drop(two);
        assert_eq!(connections.count(), (0, 2));
        assert!(connections.open.lock().expect("no panic").of.is_empty(), "nothing is left of who has gone");
    }

    #[test]
    fn open_files_bound_the_connections() {
        let within = |files, most, of_network| {
            let made = Connections::within(files, most, of_network, Vec::new());
            (made.most, made.most_of_network)
        };
        assert_eq!(within(1_024, None, None), (840, 735));
        assert_eq!(within(65_536, Some(10_000), None), (10_000, 8_750));
        assert_eq!(within(65_536, Some(0), Some(50)), (61_320, 50));
        assert_eq!(within(10, None, None), (16, 14));
    }
}
