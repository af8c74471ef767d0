//! What a service manager is told (`sd_notify(3)`): a datagram to the socket that it names.
//!
//! By hand and not by a crate, because none of those leaves the socket open, and one that blocks would stop the loop whose
//! turning is to be proven.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager.
#[derive(Debug)]
pub struct Notify {
    socket: UnixDatagram,
    /// It ends a service that was silent for so long.
    pub watchdog: Option<Duration>,
}

impl Notify {
    /// If one asks to be told.
    pub fn from_environment() -> Option<Self> {
        let path = std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())?;
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let watchdog = watchdog(number("WATCHDOG_USEC"), number("WATCHDOG_PID"), u64::from(std::process::id()));
        match connect(&path) {
            Ok(socket) => Some(Self { socket, watchdog }),
            Err(error) => {
                tracing::warn!("NOTIFY_SOCKET {} cannot be used: {error}", path.display());
                None
            }
        }
    }

    /// Tells it; lines of `NAME=value`.
    pub fn say(&self, lines: &str) {
        if let Err(error) = self.socket.send(lines.as_bytes()) {
            // It will be told again; a manager that is busy holds nobody up.
            tracing::debug!("the service manager was not told: {error}");
        }
    }
}

fn connect(path: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address(path)?)?;
    Ok(socket)
}

/// A path, or with `@` a name without one.
fn address(path: &OsStr) -> io::Result<SocketAddr> {
    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(OsString::from(path)),
    }
}

fn watchdog(micros: Option<u64>, meant: Option<u64>, own: u64) -> Option<Duration> {
    micros.filter(|micros| *micros > 0 && meant.is_none_or(|meant| meant == own)).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_is_meant_for_one_process() {
        let second = Some(Duration::from_secs(1));
        let cases = [
            (Some(1_000_000), None, second),
            (Some(1_000_000), Some(7), second),
            (Some(1_000_000), Some(8), None),
            (Some(0), None, None),
            (None, Some(7), None),
        ];
        for (micros, meant, expected) in cases {
            assert_eq!(watchdog(micros, meant, 7), expected, "{micros:?} {meant:?}");
        }
    }

    #[test]
    fn sockets_have_paths_or_names() -> io::Result<()> {
        let name = format!("simpletuner-worker-test-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        Notify { socket: connect(OsStr::new(&format!("@{name}")))?, watchdog: None }.say("READY=1");
        let mut heard = [0; 64];
        let length = manager.recv(&mut heard)?;
        assert_eq!(&heard[..length], b"READY=1");
        assert!(connect(OsStr::new("/does/not/exist")).is_err());
        Ok(())
    }
}
