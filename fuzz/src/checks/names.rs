//! Short texts with a meaning: a value stays the same when it is printed and parsed again, and keeps its limits.

use std::fmt::{Debug, Display};
use std::net::IpAddr;
use std::str::FromStr;

use app::domain::access::{Permission, Role, is_valid_name};
use app::domain::ids::{JobId, SessionId, TokenId, UserId, WorkerId};
use app::domain::labels::{MAX_LABEL_CHARS, MAX_LABELS};
use app::domain::network::Network;
use app::domain::secret::variable_name;
use app::domain::time::Timestamp;
use app::protocol::status::{ArtifactKind, JobStatus, Target, WorkerStatus, WorkerType};
use app::protocol::system::fingerprint::Fingerprint;
use app::protocol::topic::Topic;

use crate::text::is_plain_path;

/// Parses each text as everything that it could be.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    timestamp(text);
    ids(text);
    words(text);
    labels(text);
    path(text);
    assert_round_trip(Fingerprint::from_str(text).ok(), |text| text.parse().ok());
    assert_round_trip(Topic::parse(text), Topic::parse);
    if let Ok(network) = text.parse::<Network>() {
        assert_round_trip(Some(network), |text| text.parse().ok());
        let (address, _) = text.trim().split_once('/').unwrap_or((text.trim(), ""));
        let written: IpAddr = address.parse().expect("a parsed address");
        assert!(network.contains(written), "{network} contains the address in its text");
        // The first and last address according to another library; but here IPv4 is never part of IPv6.
        let reference = text.trim().parse::<ipnet::IpNet>().map(|net| [net.network(), net.broadcast()]);
        let is_same_family = |address: &IpAddr| address.to_canonical().is_ipv4() == written.to_canonical().is_ipv4();
        let contains_all =
            reference.into_iter().flatten().filter(is_same_family).all(|address| network.contains(address));
        assert!(contains_all, "{network} is not {text:?}");
    }
    if let Some(name) = variable_name(text) {
        assert!((3..=64).contains(&name.len()) && name.eq_ignore_ascii_case(text));
        assert!(!name.contains(['=', '\0']) && !name.starts_with("SIMPLETUNER_"));
        assert_eq!(variable_name(&name), Some(name));
    }
    if is_valid_name(text) {
        assert!(text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%?#".contains(&byte)));
    }
}

fn assert_round_trip<T: Display + Debug + PartialEq>(read: Option<T>, parse: impl Fn(&str) -> Option<T>) {
    if let Some(value) = read {
        assert_eq!(parse(&value.to_string()).as_ref(), Some(&value));
    }
}

/// Compares with another calendar library.
fn timestamp(text: &str) {
    let Some(time) = Timestamp::parse_rfc3339(text) else { return };
    let reference: jiff::Timestamp = text.parse().unwrap_or_else(|error| panic!("{text:?} is not a time: {error}"));
    assert_eq!(reference.as_nanosecond().div_euclid(1_000_000), i128::from(time.0), "{text:?}");
    assert_round_trip(Some(time), Timestamp::parse_rfc3339);
}

fn ids(text: &str) {
    let harmless = (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    assert_eq!(JobId::parse(text).is_ok(), harmless);
    assert_round_trip(JobId::parse(text).ok(), |text| JobId::parse(text).ok());
    assert_eq!(WorkerId::parse(text).is_ok(), harmless);
    assert_eq!(UserId::parse(text).is_ok(), harmless);
    assert_eq!(TokenId::parse(text).is_ok(), harmless);
    assert_eq!(SessionId::parse(text).is_ok(), harmless);
}

fn words(text: &str) {
    assert!(Permission::parse(text).is_none_or(|found| found.as_str() == text));
    assert!(Role::parse(text).is_none_or(|found| found.as_str() == text));
    assert!(JobStatus::parse(text).is_none_or(|found| found.as_str() == text));
    assert!(WorkerStatus::parse(text).is_none_or(|found| found.as_str() == text));
    assert!(WorkerType::parse(text).is_none_or(|found| found.as_str() == text));
    assert!(Target::parse(text).is_none_or(|found| found.as_str() == text));
    assert!(ArtifactKind::parse(text).is_none_or(|found| found.as_str() == text));
}

/// One pair per line, as on an agent's command line.
fn labels(text: &str) {
    let pairs: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let Ok(labels) = crate::worker::labels::parse(&pairs) else { return };
    let usable = |text: &String| text.chars().count() <= MAX_LABEL_CHARS && !text.chars().any(char::is_control);
    assert!(labels.0.len() <= MAX_LABELS.min(pairs.len()));
    assert!(labels.0.iter().all(|(key, value)| !key.is_empty() && usable(key) && usable(value)));
    let printed: Vec<String> = labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(crate::worker::labels::parse(&printed).as_ref(), Ok(&labels));
    assert_eq!(labels.with_fallback(&labels), labels);
}

/// A path that the server accepts is accepted by the agent, too, and leads into the directory.
fn path(text: &str) {
    if is_plain_path(text) {
        assert!(crate::worker::bundle::is_safe_relative_path(text), "the agent would reject {text:?}");
    }
    if crate::worker::bundle::is_safe_relative_path(text) {
        let joined = std::path::Path::new("/a/b").join(text);
        assert!(joined.starts_with("/a/b") && joined.components().all(|part| part.as_os_str() != ".."));
        assert_eq!(joined.to_str(), Some(format!("/a/b/{text}").as_str()));
    }
}
