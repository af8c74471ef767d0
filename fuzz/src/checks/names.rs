//! Every small text with a meaning: what is read is printed and read again as the same, and keeps its limits.

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

/// Says of each text what it could be.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    moment(text);
    ids(text);
    words(text);
    labels(text);
    path(text);
    again(Fingerprint::from_str(text).ok(), |text| text.parse().ok());
    again(Topic::parse(text), Topic::parse);
    if let Ok(network) = text.parse::<Network>() {
        again(Some(network), |text| text.parse().ok());
        let (address, _) = text.trim().split_once('/').unwrap_or((text.trim(), ""));
        let named: IpAddr = address.parse().expect("it was read");
        assert!(network.contains(named), "{network} has the address it was named by");
        // From the first address to the last, as a library of others counts them; but IPv4 is never part of IPv6 here.
        let theirs = text.trim().parse::<ipnet::IpNet>().map(|net| [net.network(), net.broadcast()]);
        let alike = |address: &IpAddr| address.to_canonical().is_ipv4() == named.to_canonical().is_ipv4();
        let all = theirs.into_iter().flatten().filter(alike).all(|address| network.contains(address));
        assert!(all, "{network} is not {text:?}");
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

fn again<T: Display + Debug + PartialEq>(read: Option<T>, parse: impl Fn(&str) -> Option<T>) {
    if let Some(value) = read {
        assert_eq!(parse(&value.to_string()).as_ref(), Some(&value));
    }
}

/// As a calendar library of others reads it.
fn moment(text: &str) {
    let Some(moment) = Timestamp::parse_rfc3339(text) else { return };
    let theirs: jiff::Timestamp = text.parse().unwrap_or_else(|error| panic!("{text:?} is no moment: {error}"));
    assert_eq!(theirs.as_nanosecond().div_euclid(1_000_000), i128::from(moment.0), "{text:?}");
    again(Some(moment), Timestamp::parse_rfc3339);
}

fn ids(text: &str) {
    let harmless = (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    assert_eq!(JobId::parse(text).is_ok(), harmless);
    again(JobId::parse(text).ok(), |text| JobId::parse(text).ok());
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

/// A pair each line, as on an agent's command line.
fn labels(text: &str) {
    let pairs: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let Ok(labels) = crate::labels::parse(&pairs) else { return };
    let usable = |text: &String| text.chars().count() <= MAX_LABEL_CHARS && !text.chars().any(char::is_control);
    assert!(labels.0.len() <= MAX_LABELS.min(pairs.len()));
    assert!(labels.0.iter().all(|(key, value)| !key.is_empty() && usable(key) && usable(value)));
    let printed: Vec<String> = labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(crate::labels::parse(&printed).as_ref(), Ok(&labels));
    assert_eq!(labels.with_fallback(&labels), labels);
}

/// What the server takes as a path, the agent takes too, and it leads down.
fn path(text: &str) {
    if is_plain_path(text) {
        assert!(crate::bundle::is_safe_relative_path(text), "the agent would refuse {text:?}");
    }
    if crate::bundle::is_safe_relative_path(text) {
        let depth = std::path::Path::new("/a/b").join(text);
        assert!(depth.starts_with("/a/b") && depth.components().all(|part| part.as_os_str() != ".."));
        assert_eq!(depth.to_str(), Some(format!("/a/b/{text}").as_str()));
    }
}
