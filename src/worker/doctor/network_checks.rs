//! Evaluates the connection to the orchestrator.

use app::domain::time::{Millis, Timestamp};
use app::remote::ServerTrust;
use reqwest::Url;

use super::certificate::CertificateInfo;
use super::connection_probe::{ConnectionProbe, ProbeError, ProbeResponse};
use super::diagnostic::Diagnostic;
use crate::worker::config::is_local;

/// A larger difference between the clocks is a warning.
const MAX_CLOCK_SKEW: Millis = Millis::from_secs(30);
/// A certificate that expires sooner is a warning.
const RENEWAL_WARNING: Millis = Millis::from_secs(14 * 86_400);

/// The diagnostics of the steps that the probe reached.
pub fn check_connection(url: &Url, trust: &ServerTrust, probe: &ConnectionProbe) -> Vec<Diagnostic> {
    let mut lines = Vec::new();
    lines.extend(probe.addresses.as_ref().map(|names| check_dns(url, probe.proxy.as_deref(), names)));
    lines.extend(probe.connection.as_ref().map(|connection| check_tcp(probe.proxy.as_deref(), connection)));
    if let Some(health) = &probe.health {
        // If the connection broke before the certificate arrived, nothing is known about TLS.
        let is_tls_known = probe.certificate.is_some() || !matches!(health, Err(ProbeError::Network(_)));
        if is_tls_known || url.scheme() == "http" {
            lines.push(check_tls(
                url,
                trust,
                health.as_ref().err(),
                probe.certificate.as_ref(),
                health.as_ref().ok().map(|response| response.received_at),
            ));
        }
        let is_untrusted = matches!(health, Err(ProbeError::Untrusted(_)));
        if !is_untrusted {
            lines.push(check_orchestrator(url, health, probe.queue.as_ref()));
        }
        lines.extend(health.as_ref().ok().and_then(check_clock));
    }
    lines.extend(probe.queue.as_ref().map(check_token));
    lines
}

fn check_dns(url: &Url, proxy: Option<&str>, names: &Result<Vec<std::net::SocketAddr>, String>) -> Diagnostic {
    let (host, advice) = match proxy {
        Some(proxy) => (format!("the proxy {proxy}"), "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"),
        None => (
            url.host_str().unwrap_or_default().to_owned(),
            "check the host name in --orchestrator-url, and this host's DNS",
        ),
    };
    match names {
        Ok(found) if !found.is_empty() => {
            let mut addresses: Vec<String> = found.iter().map(|address| address.ip().to_string()).collect();
            addresses.dedup();
            Diagnostic::ok("dns", format!("{host} is {}", addresses.join(", ")))
        }
        Ok(_) => Diagnostic::fail("dns", format!("{host} has no address"), advice),
        Err(error) => Diagnostic::fail("dns", format!("{host} was not found ({error})"), advice),
    }
}

fn check_tcp(proxy: Option<&str>, connection: &Result<std::net::SocketAddr, String>) -> Diagnostic {
    let subject = if proxy.is_some() { "the proxy accepts connections" } else { "it accepts connections" };
    match connection {
        Ok(address) => Diagnostic::ok("tcp", format!("{subject} at {address}")),
        Err(error) if proxy.is_some() => {
            Diagnostic::fail("tcp", error, "check that the proxy runs, or set NO_PROXY if none is needed")
        }
        Err(error) => Diagnostic::fail(
            "tcp",
            error,
            "check the URL and port, any firewall between, that the orchestrator runs, and that it listens with \
            --host 0.0.0.0",
        ),
    }
}

fn check_tls(
    url: &Url,
    trust: &ServerTrust,
    error: Option<&ProbeError>,
    certificate: Option<&CertificateInfo>,
    now: Option<Timestamp>,
) -> Diagnostic {
    let description = certificate.map(|certificate| {
        let day = certificate.not_after.to_string();
        format!(
            "a certificate for {}, issued by {}, valid until {}",
            certificate.names.join(", "),
            certificate.issuer,
            day.split('T').next().unwrap_or_default()
        )
    });
    if url.scheme() == "http" {
        return if is_local(url) {
            Diagnostic::ok("tls", "not used, on this machine")
        } else {
            Diagnostic::warn(
                "tls",
                "not used: the token is sent unencrypted",
                "use https:// if the network is not trusted",
            )
        };
    }
    if let Some(ProbeError::Untrusted(sentence)) = error {
        let sent = description.map(|description| format!(" (the server sent {description})")).unwrap_or_default();
        return Diagnostic::fail_with_sentence("tls", format!("{sentence}{sent}"));
    }
    let description = description.unwrap_or_else(|| "an unreadable certificate".to_owned());
    let expires_soon =
        certificate.zip(now).is_some_and(|(certificate, now)| certificate.not_after - now < RENEWAL_WARNING);
    match trust {
        ServerTrust::AcceptAny => Diagnostic::warn(
            "tls",
            format!("{description}, not verified"),
            "anyone on the network path can pose as the orchestrator: use --orchestrator-fingerprint or --ca-file",
        ),
        ServerTrust::PinnedKey(_) => Diagnostic::ok("tls", format!("its key matches the fingerprint; {description}")),
        ServerTrust::SystemRoots | ServerTrust::CaFile(_) if expires_soon => {
            Diagnostic::warn("tls", description, "renew it: agents reject it after that")
        }
        ServerTrust::SystemRoots | ServerTrust::CaFile(_) => Diagnostic::ok("tls", description),
    }
}

fn check_orchestrator(
    url: &Url,
    health: &Result<ProbeResponse, ProbeError>,
    queue: Option<&Result<ProbeResponse, String>>,
) -> Diagnostic {
    let advice = "check --orchestrator-url, and any path that a proxy adds";
    let response = match health {
        Ok(response) => response,
        Err(ProbeError::Network(sentence) | ProbeError::Untrusted(sentence)) => {
            return Diagnostic::fail_with_sentence("orchestrator", sentence);
        }
    };
    // Some firewalls allow only the paths of agents.
    let queue_responds = matches!(
        queue,
        Some(Ok(queue)) if queue.body["has_jobs"].is_boolean() || queue.body["code"].is_string()
    );
    match response.status {
        _ if queue_responds => Diagnostic::ok("orchestrator", format!("found at {url}")),
        200 if response.body["status"] == "ok" => Diagnostic::ok("orchestrator", format!("found at {url}")),
        300..=399 => Diagnostic::fail(
            "orchestrator",
            format!("{url} redirects to {}", response.location.as_deref().unwrap_or("another address")),
            "set that address with --orchestrator-url",
        ),
        status => Diagnostic::fail(
            "orchestrator",
            format!("the server at {url} (status {status}) is not an orchestrator"),
            advice,
        ),
    }
}

fn check_clock(response: &ProbeResponse) -> Option<Diagnostic> {
    let difference = response.received_at - response.date?;
    let seconds = difference.0.abs() / 1_000;
    let direction = if difference.0 < 0 { "behind" } else { "ahead of" };
    Some(if difference.0.abs() > MAX_CLOCK_SKEW.0 {
        let found = format!("this host is {seconds} s {direction} the orchestrator");
        Diagnostic::warn(
            "clock",
            found,
            "set the clock (timedatectl set-ntp true): certificates and times in logs depend on it",
        )
    } else {
        Diagnostic::ok("clock", "matches the orchestrator's")
    })
}

fn check_token(queue: &Result<ProbeResponse, String>) -> Diagnostic {
    let response = match queue {
        Ok(response) => response,
        Err(sentence) => return Diagnostic::fail_with_sentence("token", sentence),
    };
    let detail = response.body["detail"].as_str().unwrap_or("no reason given");
    match response.status {
        200 if response.body["has_jobs"].is_boolean() => Diagnostic::ok("token", "accepted by the orchestrator"),
        401 => Diagnostic::fail(
            "token",
            if detail.starts_with("Invalid token") { detail.to_owned() } else { format!("Invalid token ({detail})") },
            "get a new token from the orchestrator (Administration → Workers)",
        ),
        403 => Diagnostic::fail("token", detail, "ask the orchestrator's admin"),
        408 | 425 | 429 | 500..=599 => Diagnostic::warn(
            "token",
            format!("the orchestrator cannot respond now ({}: {detail})", response.status),
            "retry in a moment",
        ),
        status => Diagnostic::fail(
            "token",
            format!("{status}: {detail}"),
            "check --orchestrator-url: the response is not the expected one",
        ),
    }
}

#[cfg(test)]
#[path = "tests/network.rs"]
mod tests;
