//! Limits connections: in total, so that files can still be opened, and per network, so that no network can use all of
//! them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use app::domain::network::Network;
use ipnet::IpNet;
use nix::sys::resource::{Resource, getrlimit};

use crate::args::ServerArgs;
use crate::args::limits::LimitArgs;

/// Open files that are reserved for the database, logs and the like. One of 16 beyond them is reserved, too: each
/// upload and download opens a file.
const RESERVED_FILES: u64 = 128;
/// A lower limit is logged as too low for a fleet.
const LOW_LIMIT: usize = 4_000;

pub struct ConnectionLimiter {
    max: usize,
    max_per_network: usize,
    trusted_proxies: Vec<IpNet>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    total: usize,
    by_network: HashMap<Network, usize>,
    rejected: u64,
}

/// An accepted connection, which counts until this is dropped.
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    network: Option<Network>,
}

impl ConnectionLimiter {
    /// Returns the limits from the flags, or from the limit of open files.
    pub fn from_args(args: &ServerArgs) -> Self {
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(now, _)| now);
        let LimitArgs { max_connections, max_connections_per_network, .. } = args.limits;
        Self::with_file_limit(files, max_connections, max_connections_per_network, args.edge.trusted_proxies.clone())
    }

    /// Limits connections in total and per network. Networks of trusted proxies have no limit, as their clients are
    /// unknown here.
    pub fn new(max: usize, max_per_network: usize, trusted: Vec<IpNet>) -> Self {
        Self { max, max_per_network, trusted_proxies: trusted, open: Mutex::default() }
    }

    /// Uses the given limits, or those of open files; 7/8 of them for one network.
    pub fn with_file_limit(
        files: u64,
        max: Option<usize>,
        max_per_network: Option<usize>,
        trusted: Vec<IpNet>,
    ) -> Self {
        let available = usize::try_from(files.saturating_sub(RESERVED_FILES) / 16 * 15).unwrap_or(usize::MAX).max(16);
        let max = max.filter(|max| *max > 0).unwrap_or(available);
        if max > available {
            tracing::warn!(
                max,
                available,
                files,
                "--max-connections exceeds the limit of open files: raise that limit (ulimit -n, LimitNOFILE)"
            );
        } else if max < LOW_LIMIT {
            tracing::warn!(
                max,
                files,
                "low connection limit; raise the limit of open files for a large fleet (ulimit -n, LimitNOFILE)"
            );
        }
        let max_per_network = max_per_network.filter(|max_per_network| *max_per_network > 0).unwrap_or(max / 8 * 7);
        tracing::info!(max, max_per_network, files, "connection limits");
        Self::new(max, max_per_network, trusted)
    }

    /// Accepts a connection within the limits.
    pub fn try_acquire(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        let peer = peer.to_canonical();
        let is_untrusted = !self.trusted_proxies.iter().any(|proxy| proxy.contains(&peer));
        let network = is_untrusted.then(|| Network::from_client(peer));
        let mut open = self.open.lock().expect("no panic while it is held");
        let network_count = network.and_then(|network| open.by_network.get(&network)).copied().unwrap_or_default();
        if open.total >= self.max || network_count >= self.max_per_network {
            open.rejected += 1;
            // Logged at first, then at increasing intervals.
            if open.rejected.is_power_of_two() {
                tracing::warn!(host = %peer, open = open.total, network_count, rejected = open.rejected, "connection limit reached; closing new connections");
            }
            return None;
        }
        open.total += 1;
        if let Some(network) = network {
            *open.by_network.entry(network).or_default() += 1;
        }
        drop(open);
        Some(ConnectionPermit { limiter: Arc::clone(self), network })
    }

    /// Returns the number of open connections, and of those rejected.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the figures of the server, which are to be exported"))]
    pub fn counts(&self) -> (usize, u64) {
        let open = self.open.lock().expect("no panic while it is held");
        (open.total, open.rejected)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.open.lock().expect("no panic while it is held");
        open.total -= 1;
        if let Some(network) = self.network
            && let Some(number) = open.by_network.get_mut(&network)
        {
            *number -= 1;
            if *number == 0 {
                open.by_network.remove(&network);
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
    fn connections_are_limited_in_total_and_per_network() {
        let connections = Arc::new(ConnectionLimiter::new(4, 2, vec!["10.0.0.0/8".parse().expect("a network")]));
        let admit = |text: &str| connections.try_acquire(host(text));
        let (first, second) = (admit("2001:db8::1"), admit("2001:db8::2"));
        assert!(first.is_some() && second.is_some() && admit("2001:db8::3").is_none(), "a network has a limit");
        let proxied = [admit("10.0.0.1"), admit("10.0.0.1")];
        assert!(proxied.iter().all(Option::is_some) && admit("192.0.2.1").is_none(), "the limit in total is reached");
        assert_eq!(connections.counts(), (4, 2));
        drop((first, proxied));
        assert!(admit("2001:db8::3").is_some() && admit("10.0.0.1").is_some());
        drop(second);
        assert_eq!(connections.counts(), (0, 2));
        assert!(connections.open.lock().expect("no panic").by_network.is_empty(), "closed connections are not counted");
    }

    #[test]
    fn open_files_limit_the_connections() {
        let within = |files, max, max_per_network| {
            let limiter = ConnectionLimiter::with_file_limit(files, max, max_per_network, Vec::new());
            (limiter.max, limiter.max_per_network)
        };
        assert_eq!(within(1_024, None, None), (840, 735));
        assert_eq!(within(65_536, Some(10_000), None), (10_000, 8_750));
        assert_eq!(within(65_536, Some(0), Some(50)), (61_320, 50));
        assert_eq!(within(10, None, None), (16, 14));
    }
}
