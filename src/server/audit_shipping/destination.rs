//! Destinations of audit checkpoints.

use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use app::threads::run_io;

use reqwest::{Client, StatusCode, Url, header, redirect};
use tokio::net::{UdpSocket, UnixDatagram, lookup_host};

use super::syslog::format_message;

/// The socket of the local syslog.
const LOCAL_SYSLOG_SOCKET: &str = "/dev/log";
/// The port of syslog over UDP.
const SYSLOG_PORT: u16 = 514;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditDestination {
    /// A file, which should be on a mount of another host.
    File(PathBuf),
    /// The syslog of this host.
    LocalSyslog(PathBuf),
    /// A syslog server, over UDP.
    Syslog { host: String, port: u16 },
    /// A URL that accepts JSON lines by POST.
    Webhook(Url),
}

impl FromStr for AuditDestination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let syntax_error = || "write file:/PATH, syslog:, syslog:HOST[:PORT] or https://HOST/PATH".to_owned();
        match text.split_once(':').ok_or_else(syntax_error)? {
            ("file", path) if path.starts_with('/') => Ok(Self::File(path.into())),
            ("file", _) => Err("the path of file: must begin with a slash".to_owned()),
            ("syslog", "") => Ok(Self::LocalSyslog(LOCAL_SYSLOG_SOCKET.into())),
            ("syslog", target) => parse_syslog(target).ok_or_else(syntax_error),
            ("http" | "https", _) => parse_webhook(text),
            _ => Err(syntax_error()),
        }
    }
}

fn parse_syslog(target: &str) -> Option<AuditDestination> {
    if let Ok(address) = target.parse::<SocketAddr>() {
        return Some(AuditDestination::Syslog { host: address.ip().to_string(), port: address.port() });
    }
    let (host, port) = match target.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, port.parse().ok()?),
        _ => (target, SYSLOG_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_plain)).then(|| AuditDestination::Syslog { host: host.to_owned(), port })
}

fn parse_webhook(text: &str) -> Result<AuditDestination, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let is_loopback = url.host_str().is_some_and(|host| ["127.0.0.1", "[::1]", "localhost"].contains(&host));
    if url.scheme() == "https" || is_loopback {
        Ok(AuditDestination::Webhook(url))
    } else {
        Err("a webhook requires https://, unless it is on this host".to_owned())
    }
}

/// Without the parts of a URL that may be secret.
impl fmt::Display for AuditDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::LocalSyslog(path) => write!(f, "syslog:{}", path.display()),
            Self::Syslog { host, port } => write!(f, "syslog:{host}:{port}"),
            Self::Webhook(url) => write!(f, "{}://{}", url.scheme(), url.host_str().unwrap_or_default()),
        }
    }
}

impl AuditDestination {
    /// Sends whole lines. If it fails, all of them are sent again.
    pub async fn send(&self, lines: &str) -> io::Result<()> {
        match self {
            Self::File(path) => {
                let (path, lines) = (path.clone(), lines.to_owned());
                let append = move || {
                    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
                    file.write_all(lines.as_bytes())?;
                    file.sync_data()
                };
                run_io(append).await
            }
            Self::LocalSyslog(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                for line in lines.lines() {
                    socket.send(format_message(line).as_bytes()).await?;
                }
                Ok(())
            }
            Self::Syslog { host, port } => {
                let address = lookup_host((host.as_str(), *port)).await?.next();
                let address = address.ok_or_else(|| io::Error::other("the host name has no address"))?;
                let local_address: SocketAddr = if address.is_ipv4() {
                    (Ipv4Addr::UNSPECIFIED, 0).into()
                } else {
                    (Ipv6Addr::UNSPECIFIED, 0).into()
                };
                let socket = UdpSocket::bind(local_address).await?;
                socket.connect(address).await?;
                for line in lines.lines() {
                    socket.send(format_message(line).as_bytes()).await?;
                }
                Ok(())
            }
            Self::Webhook(url) => {
                let status = post(url, lines).await.map_err(|error| io::Error::other(error.without_url()))?;
                // A redirect is an error, too: the lines were not accepted.
                if status.is_success() { Ok(()) } else { Err(io::Error::other(format!("response status {status}"))) }
            }
        }
    }
}

async fn post(url: &Url, lines: &str) -> reqwest::Result<StatusCode> {
    // Lines are sent to the configured URL only.
    let client = Client::builder().redirect(redirect::Policy::none()).build()?;
    let request = client.post(url.clone()).header(header::CONTENT_TYPE, "application/x-ndjson").body(lines.to_owned());
    Ok(request.send().await?.status())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_parsed() {
        let syslog = |host: &str, port| Ok(AuditDestination::Syslog { host: host.to_owned(), port });
        let url = "https://hooks.example/audit?key=1";
        for (text, expected) in [
            ("file:/mnt/audit/lines.jsonl", Ok(AuditDestination::File("/mnt/audit/lines.jsonl".into()))),
            ("syslog:", Ok(AuditDestination::LocalSyslog("/dev/log".into()))),
            ("syslog:logs.example", syslog("logs.example", 514)),
            ("syslog:logs.example:5514", syslog("logs.example", 5514)),
            ("syslog:[2001:db8::1]:514", syslog("2001:db8::1", 514)),
            ("syslog:2001:db8::1", syslog("2001:db8::1", 514)),
            (url, Ok(AuditDestination::Webhook(Url::parse(url).expect("a URL")))),
        ] {
            assert_eq!(text.parse::<AuditDestination>(), expected, "{text}");
        }
        for invalid in
            ["", "lines.jsonl", "file:lines.jsonl", "syslog:a b", "syslog:a:b", "http://hooks.example", "ftp://x"]
        {
            assert!(invalid.parse::<AuditDestination>().is_err(), "{invalid}");
        }
        assert_eq!(url.parse::<AuditDestination>().expect("a URL").to_string(), "https://hooks.example");
    }
}
