//! Notifies the service manager (`sd_notify(3)`): a datagram to the socket that it names.
//!
//! Implemented here, because no crate keeps the socket open, and a blocking one would stop the loop whose progress
//! the notifications prove.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

#[derive(Debug)]
pub struct ServiceNotifier {
    socket: UnixDatagram,
    /// The service manager kills a service that was silent for this long.
    pub watchdog: Option<Duration>,
}

impl ServiceNotifier {
    /// `None` if no service manager asks for notifications.
    pub fn from_environment() -> Option<Self> {
        let path = std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())?;
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let watchdog =
            watchdog_interval(number("WATCHDOG_USEC"), number("WATCHDOG_PID"), u64::from(std::process::id()));
        match connect(&path) {
            Ok(socket) => Some(Self { socket, watchdog }),
            Err(error) => {
                tracing::warn!("cannot use NOTIFY_SOCKET {}: {error}", path.display());
                None
            }
        }
    }

    /// Sends lines of `NAME=value`.
    pub fn send(&self, lines: &str) {
        if let Err(error) = self.socket.send(lines.as_bytes()) {
            // It is sent again; a busy manager must not block the agent.
            tracing::debug!("cannot notify the service manager: {error}");
        }
    }
}

fn connect(path: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&socket_address(path)?)?;
    Ok(socket)
}

/// A path, or with `@` an abstract name.
fn socket_address(path: &OsStr) -> io::Result<SocketAddr> {
    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(OsString::from(path)),
    }
}

fn watchdog_interval(micros: Option<u64>, watched_pid: Option<u64>, own_pid: u64) -> Option<Duration> {
    micros
        .filter(|micros| *micros > 0 && watched_pid.is_none_or(|watched_pid| watched_pid == own_pid))
        .map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdog_of_another_process_is_ignored() {
        let second = Some(Duration::from_secs(1));
        let cases = [
            (Some(1_000_000), None, second),
            (Some(1_000_000), Some(7), second),
            (Some(1_000_000), Some(8), None),
            (Some(0), None, None),
            (None, Some(7), None),
        ];
        for (micros, watched_pid, expected) in cases {
            assert_eq!(watchdog_interval(micros, watched_pid, 7), expected, "{micros:?} {watched_pid:?}");
        }
    }

    #[test]
    fn notify_socket_is_a_path_or_an_abstract_name() -> io::Result<()> {
        let name = format!("simpletuner-worker-test-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        ServiceNotifier { socket: connect(OsStr::new(&format!("@{name}")))?, watchdog: None }.send("READY=1");
        let mut message = [0; 64];
        let length = manager.recv(&mut message)?;
        assert_eq!(&message[..length], b"READY=1");
        assert!(connect(OsStr::new("/does/not/exist")).is_err());
        Ok(())
    }
}
