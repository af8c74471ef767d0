//! Addresses of experiment trackers and repositories in a log. A log is text from outside: only addresses of known
//! services are found, by their exact host names, and they are written anew from what was understood of them.

use std::fmt::Write;

use super::super::text::is_control_or_invisible;
use super::{plain_text, visible_range};
use crate::words::wire_words;

/// The maximum number of links in a log.
const MAX_LINKS: usize = 5;
/// A longer address is not a link, in bytes.
const MAX_URL_BYTES: usize = 300;

wire_words!(
    /// A service that trainers report to.
    LinkedService {
        /// A run of Weights & Biases.
        WeightsAndBiases = "wandb",
        /// A repository of Hugging Face.
        HuggingFace = "huggingface",
        /// An experiment of Comet.
        Comet = "comet",
        /// A server of `TensorBoard`, in the trainer's own network.
        TensorBoard = "tensorboard",
        /// A server of `MLflow`, in the trainer's own network.
        MlFlow = "mlflow",
    }
);

/// An address of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLink {
    /// The service.
    pub service: LinkedService,
    /// The address. With `http://` it is of a private network, and only text.
    pub url: String,
}

/// Finds the links in complete lines of a log: each once, in order, at most five.
pub fn find_links(text: &str) -> Vec<FoundLink> {
    let mut found: Vec<FoundLink> = Vec::new();
    for line in text.split('\n').filter(|line| line.contains("://")) {
        let plain = plain_text(&line[visible_range(line.as_bytes())]);
        for (at, _) in plain.match_indices("://") {
            let (before, rest) = (&plain[..at], &plain[at + "://".len()..]);
            let link = if before.ends_with("https") {
                public_link(rest)
            } else if before.ends_with("http") {
                private_link(&plain, rest)
            } else {
                None
            };
            if let Some(link) = link.filter(|link| link.url.len() <= MAX_URL_BYTES && !found.contains(link)) {
                found.push(link);
                if found.len() == MAX_LINKS {
                    return found;
                }
            }
        }
    }
    found
}

/// Parses the address of a service after `https://`.
fn public_link(rest: &str) -> Option<FoundLink> {
    let (host, path) = rest.split_once('/')?;
    let service = match host {
        "wandb.ai" => LinkedService::WeightsAndBiases,
        "huggingface.co" => LinkedService::HuggingFace,
        "www.comet.com" => LinkedService::Comet,
        _ => return None,
    };
    let segments = path_segments(path)?;
    let names: Vec<&str> = segments.iter().map(String::as_str).collect();
    let kept = match (service, names.as_slice()) {
        (LinkedService::WeightsAndBiases, [_, _, "runs", _, ..]) => 4,
        (LinkedService::HuggingFace, ["datasets" | "spaces", _, _, ..]) => 3,
        (LinkedService::HuggingFace, [owner, _, ..]) if !HUGGING_FACE_PAGES.contains(owner) => 2,
        (LinkedService::Comet, [workspace, _, _, ..]) if !COMET_PAGES.contains(workspace) => 3,
        _ => return None,
    };
    Some(FoundLink { service, url: format!("https://{host}/{}", names[..kept].join("/")) })
}

/// First parts of paths that are not the owner of a repository.
const HUGGING_FACE_PAGES: [&str; 16] = [
    "api",
    "blog",
    "collections",
    "datasets",
    "docs",
    "join",
    "learn",
    "login",
    "models",
    "new",
    "organizations",
    "papers",
    "settings",
    "spaces",
    "tasks",
    "terms-of-service",
];
/// First parts of paths that are not a workspace.
const COMET_PAGES: [&str; 3] = ["api", "docs", "site"];

/// Parses an address in a private network after `http://`; the line has to name the service.
fn private_link(line: &str, rest: &str) -> Option<FoundLink> {
    let service = if line.contains("TensorBoard") {
        LinkedService::TensorBoard
    } else if line.contains("MLflow") || line.contains("View run") || line.contains("View experiment") {
        LinkedService::MlFlow
    } else {
        return None;
    };
    let end = rest.find(|c: char| !matches!(c, 'a'..='z' | '0'..='9' | '.' | ':')).unwrap_or(rest.len());
    let address = rest[..end].trim_end_matches(['.', ':']);
    if !matches!(rest[end..].chars().next(), None | Some('/' | ' ' | ')')) {
        return None;
    }
    let (host, port) = address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port)));
    let port = port.map(str::parse::<u16>).transpose().ok()?;
    let is_private = host == "localhost" || is_private_address(host);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    is_private.then(|| FoundLink { service, url: format!("http://{host}{port}/") })
}

/// Whether it is an IPv4 address of a loopback or of a private network (RFC 1918).
fn is_private_address(host: &str) -> bool {
    let parts: Option<Vec<u8>> = host.split('.').map(|part| part.parse().ok()).collect();
    matches!(parts.as_deref(), Some([127 | 10, _, _, _] | [172, 16..=31, _, _] | [192, 168, _, _]))
}

/// The parts of a path up to the end of the address, percent-encoded; none if one of them is not a name.
fn path_segments(text: &str) -> Option<Vec<String>> {
    let is_end = |c: char| {
        c.is_whitespace()
            || is_control_or_invisible(c)
            || matches!(
                c,
                '"' | '\''
                    | '`'
                    | '<'
                    | '>'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '|'
                    | '\\'
                    | '^'
                    | '?'
                    | '#'
                    | '\u{fffd}'
            )
    };
    // A longer path is not read to its end, and the link is too long.
    let limit = text.floor_char_boundary(MAX_URL_BYTES + 1);
    let end = text[..limit].find(is_end).unwrap_or(limit);
    let path = text[..end].trim_end_matches(['.', ',', ':', ';', '!', '/']);
    if end > MAX_URL_BYTES || path.is_empty() {
        return None;
    }
    path.split('/').map(encode_segment).collect()
}

/// Encodes a part of a path. An encoded byte stays as it is, unless the part would then be another one.
fn encode_segment(segment: &str) -> Option<String> {
    if matches!(segment, "" | "." | "..") {
        return None;
    }
    let mut encoded = String::new();
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                let value = u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
                let is_plain = digits.iter().all(u8::is_ascii_hexdigit) && !value.is_ascii_control();
                if !is_plain || matches!(value, b'/' | b'\\' | b'.' | b'%') {
                    return None;
                }
                write!(encoded, "%{value:02X}").ok()?;
            }
            other => write!(encoded, "%{other:02X}").ok()?,
        }
    }
    Some(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn urls(text: &str) -> Vec<String> {
        find_links(text).into_iter().map(|link| format!("{} {}", link.service.as_str(), link.url)).collect()
    }

    #[test]
    fn addresses_of_known_services_are_found() {
        for (line, expected) in [
            (
                "wandb: 🚀 View run at \u{1b}[34mhttps://wandb.ai/ada/digits/runs/x1?nw=ada\u{1b}[0m",
                "wandb https://wandb.ai/ada/digits/runs/x1",
            ),
            (
                "See https://wandb.ai/ada/my%20project/runs/x1/overview.",
                "wandb https://wandb.ai/ada/my%20project/runs/x1",
            ),
            ("(https://huggingface.co/ada/lora/tree/main)", "huggingface https://huggingface.co/ada/lora"),
            ("https://huggingface.co/datasets/ada/cats", "huggingface https://huggingface.co/datasets/ada/cats"),
            ("https://huggingface.co/ada/größe", "huggingface https://huggingface.co/ada/gr%C3%B6%C3%9Fe"),
            ("COMET INFO: live at https://www.comet.com/ada/p/0af", "comet https://www.comet.com/ada/p/0af"),
            ("TensorBoard 2.16 at http://localhost:6006/ (Press CTRL+C)", "tensorboard http://localhost:6006/"),
            ("🏃 View run x at: http://10.0.0.7:5000/#/experiments/1", "mlflow http://10.0.0.7:5000/"),
            ("TensorBoard at http://172.31.0.1", "tensorboard http://172.31.0.1/"),
            ("TensorBoard at http://192.168.1.2:80/", "tensorboard http://192.168.1.2:80/"),
        ] {
            assert_eq!(urls(line), [expected], "{line:?}");
        }
    }

    #[test]
    fn hostile_addresses_are_no_links() {
        let long = format!("https://wandb.ai/a/b/runs/{}", "x".repeat(MAX_URL_BYTES));
        for line in [
            "javascript:alert(1)//wandb.ai/a/b/runs/c",
            "javascript://wandb.ai/a/b/runs/c",
            "https://wandb.ai.evil.example/a/b/runs/c",
            "https://wandb.ai@evil.example/a/b/runs/c",
            "https://ada:secret@wandb.ai/a/b/runs/c",
            "https://wandb.ai:8443/a/b/runs/c",
            "https://evil.example/https:/wandb.ai/a/b/runs/c",
            "https://xn--wndb-0qa.ai/a/b/runs/c",
            "https://wаndb.ai/a/b/runs/c",
            "https://WANDB.AI/a/b/runs/c",
            "https://wandb.ai./a/b/runs/c",
            "https://wandb.ai\\@evil.example/a/b/runs/c",
            "https://wandb.ai/\"><script>alert(1)</script>/runs/c",
            "https://wandb.ai/a/b/ru\nns/c",
            "https://wandb.ai/a/b\r/runs/c",
            "https://wandb.ai/a/b/runs/\u{202e}c",
            "https://wandb.ai/a/../runs/c/d",
            "https://wandb.ai/a/%2e%2e/runs/c",
            "https://wandb.ai/a/b%2f/runs/c",
            "https://wandb.ai/a/b%0a/runs/c",
            "https://wandb.ai/a/b%zz/runs/c",
            "https://wandb.ai/a//runs/c",
            "https://wandb.ai/authorize",
            "https://huggingface.co/settings/tokens",
            "https://huggingface.co/docs/hub",
            "http://wandb.ai/a/b/runs/c",
            "TensorBoard at http://evil.example:6006/",
            "TensorBoard at http://localhost.evil.example/",
            "TensorBoard at http://localhost@evil.example/",
            "TensorBoard at http://8.8.8.8:6006/",
            "TensorBoard at http://172.32.0.1/",
            "TensorBoard at http://10.0.0.256/",
            "TensorBoard at http://10.0.1/",
            "TensorBoard at http://localhost:99999/",
            "at http://localhost:6006/",
            "https://",
            "://",
            long.as_str(),
        ] {
            assert_eq!(urls(line), [""; 0], "{line:?}");
        }
    }

    #[test]
    fn each_link_is_found_once_and_their_number_is_limited() {
        let many: Vec<String> = (0..10_000).map(|run| format!("https://wandb.ai/a/b/runs/{}", run / 2)).collect();
        let expected: Vec<_> = (0..5).map(|run| format!("wandb https://wandb.ai/a/b/runs/{run}")).collect();
        assert_eq!(urls(&many.join("\n")), expected);
        assert_eq!(urls(&"https://wandb.ai/a/b/runs/c ".repeat(10_000)).len(), 1);
    }

    proptest! {
        #[test]
        fn a_link_is_plain_and_leads_to_its_service(
            path in "(a|/|\\.|%2|%41|%|runs|\"|<|é|\u{202e}|@|\\\\|\\x1b\\[1m|\\r|\\n| |:|\\?|#){0,30}",
            scheme in "(https?|javascript)",
            host in "(wandb\\.ai|huggingface\\.co|www\\.comet\\.com|localhost|evil\\.example)",
        ) {
            for FoundLink { url, .. } in find_links(&format!("TensorBoard {scheme}://{host}/{path}")) {
                let hosts = ["https://wandb.ai/", "https://huggingface.co/", "https://www.comet.com/", "http://localhost/"];
                prop_assert!(hosts.iter().any(|host| url.starts_with(host)), "{url}");
                prop_assert!(url.len() <= MAX_URL_BYTES);
                prop_assert!(url.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%:".contains(&byte)), "{url}");
            }
        }
    }
}
