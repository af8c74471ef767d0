//! What the way to the orchestrator means for jobs.

use app::domain::time::{Millis, Timestamp};
use app::remote::Trust;
use reqwest::Url;

use super::certificate::Certificate;
use super::line::Line;
use super::way::{Heard, Unheard, Way};
use crate::config::is_local;

/// Clocks that differ by more are worth a look.
const CLOCKS: Millis = Millis::seconds(30);
/// A certificate that ends sooner should be renewed.
const RENEW: Millis = Millis::seconds(14 * 86_400);

/// The lines, as far as the way went.
pub fn judge(url: &Url, trust: &Trust, way: &Way) -> Vec<Line> {
    let mut lines = Vec::new();
    lines.extend(way.names.as_ref().map(|names| dns(url, way.proxy.as_deref(), names)));
    lines.extend(way.connection.as_ref().map(|connection| tcp(way.proxy.as_deref(), connection)));
    if let Some(health) = &way.health {
        // Where the connection broke before a certificate was shown, nothing is known of TLS.
        let known = way.certificate.is_some() || !matches!(health, Err(Unheard::Network(_)));
        if known || url.scheme() == "http" {
            lines.push(tls(
                url,
                trust,
                health.as_ref().err(),
                way.certificate.as_ref(),
                health.as_ref().ok().map(|heard| heard.at),
            ));
        }
        let untrusted = matches!(health, Err(Unheard::Untrusted(_)));
        if !untrusted {
            lines.push(orchestrator(url, health, way.queue.as_ref()));
        }
        lines.extend(health.as_ref().ok().and_then(clock));
    }
    lines.extend(way.queue.as_ref().map(token));
    lines
}

fn dns(url: &Url, proxy: Option<&str>, names: &Result<Vec<std::net::SocketAddr>, String>) -> Line {
    let (whose, change) = match proxy {
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
            Line::ok("dns", format!("{whose} is {}", addresses.join(", ")))
        }
        Ok(_) => Line::fail("dns", format!("{whose} has no address"), change),
        Err(error) => Line::fail("dns", format!("{whose} is not known ({error})"), change),
    }
}

fn tcp(proxy: Option<&str>, connection: &Result<std::net::SocketAddr, String>) -> Line {
    let to = if proxy.is_some() { "the proxy takes connections" } else { "it takes connections" };
    match connection {
        Ok(address) => Line::ok("tcp", format!("{to} at {address}")),
        Err(error) if proxy.is_some() => {
            Line::fail("tcp", error, "check that the proxy runs, or set NO_PROXY if none is needed")
        }
        Err(error) => Line::fail(
            "tcp",
            error,
            "check URL and port, any firewall between, that the orchestrator runs, and that it listens with --host 0.0.0.0",
        ),
    }
}

fn tls(
    url: &Url,
    trust: &Trust,
    unheard: Option<&Unheard>,
    shown: Option<&Certificate>,
    now: Option<Timestamp>,
) -> Line {
    let shown_as = shown.map(|certificate| {
        let day = certificate.until.to_string();
        format!(
            "a certificate for {}, signed by {}, until {}",
            certificate.names.join(", "),
            certificate.issuer,
            day.split('T').next().unwrap_or_default()
        )
    });
    if url.scheme() == "http" {
        return if is_local(url) {
            Line::ok("tls", "none, on this machine")
        } else {
            Line::warn("tls", "none: the token travels unencrypted", "write https:// where the network is not trusted")
        };
    }
    if let Some(Unheard::Untrusted(sentence)) = unheard {
        let shown = shown_as.map(|shown| format!(" (it shows {shown})")).unwrap_or_default();
        return Line::failed("tls", format!("{sentence}{shown}"));
    }
    let shown_as = shown_as.unwrap_or_else(|| "a certificate that cannot be read".to_owned());
    let soon = shown.zip(now).is_some_and(|(certificate, now)| certificate.until - now < RENEW);
    match trust {
        Trust::Anything => Line::warn(
            "tls",
            format!("{shown_as}, not verified"),
            "anyone on the network path can pose as the orchestrator: use --orchestrator-fingerprint or --ca-file",
        ),
        Trust::Pinned(_) => Line::ok("tls", format!("it has the key of the fingerprint; {shown_as}")),
        Trust::System | Trust::Only(_) if soon => {
            Line::warn("tls", shown_as, "renew it: agents refuse it from then on")
        }
        Trust::System | Trust::Only(_) => Line::ok("tls", shown_as),
    }
}

fn orchestrator(url: &Url, health: &Result<Heard, Unheard>, queue: Option<&Result<Heard, String>>) -> Line {
    let advice = "check --orchestrator-url, and any path that a proxy adds";
    let heard = match health {
        Ok(heard) => heard,
        Err(Unheard::Network(sentence) | Unheard::Untrusted(sentence)) => {
            return Line::failed("orchestrator", sentence);
        }
    };
    // Behind some firewalls only the agents' own paths are open.
    let by_queue =
        matches!(queue, Some(Ok(heard)) if heard.body["has_jobs"].is_boolean() || heard.body["code"].is_string());
    match heard.status {
        _ if by_queue => Line::ok("orchestrator", format!("one answers at {url}")),
        200 if heard.body["status"] == "ok" => Line::ok("orchestrator", format!("one answers at {url}")),
        300..=399 => Line::fail(
            "orchestrator",
            format!("{url} redirects to {}", heard.location.as_deref().unwrap_or("another address")),
            "give that address as --orchestrator-url",
        ),
        status => Line::fail("orchestrator", format!("what answers at {url} (status {status}) is none"), advice),
    }
}

fn clock(heard: &Heard) -> Option<Line> {
    let difference = heard.at - heard.date?;
    let seconds = difference.0.abs() / 1_000;
    let way = if difference.0 < 0 { "behind" } else { "ahead of" };
    Some(if difference.0.abs() > CLOCKS.0 {
        let found = format!("this host is {seconds} s {way} the orchestrator");
        Line::warn(
            "clock",
            found,
            "set the clock (timedatectl set-ntp true): certificates and times in logs depend on it",
        )
    } else {
        Line::ok("clock", "agrees with the orchestrator's")
    })
}

fn token(queue: &Result<Heard, String>) -> Line {
    let heard = match queue {
        Ok(heard) => heard,
        Err(sentence) => return Line::failed("token", sentence),
    };
    let detail = heard.body["detail"].as_str().unwrap_or("no reason given");
    match heard.status {
        200 if heard.body["has_jobs"].is_boolean() => Line::ok("token", "the orchestrator accepts it"),
        401 => Line::fail(
            "token",
            if detail.starts_with("Invalid token") { detail.to_owned() } else { format!("Invalid token ({detail})") },
            "get a new token from the orchestrator (Administration → Workers)",
        ),
        403 => Line::fail("token", detail, "ask the orchestrator's admin"),
        408 | 425 | 429 | 500..=599 => Line::warn(
            "token",
            format!("the orchestrator could not say now ({}: {detail})", heard.status),
            "ask again in a moment",
        ),
        status => Line::fail(
            "token",
            format!("{status}: {detail}"),
            "check --orchestrator-url: an orchestrator answers there in another way",
        ),
    }
}

#[cfg(test)]
#[path = "tests/network.rs"]
mod tests;
