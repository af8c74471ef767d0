//! Classifies errors by their text.

use super::CauseKind;

/// Keywords of each kind. The first match counts.
const KEYWORDS: [(CauseKind, &[&str]); 9] = [
    (CauseKind::OutOfMemory, &["out of memory", "outofmemoryerror", "memoryerror", "can't allocate memory"]),
    (CauseKind::DiskFull, &["[errno 28]", "no space left on device", "disk quota exceeded"]),
    (CauseKind::Killed, &["is killed by signal: killed"]),
    (CauseKind::Crash, &["is killed by signal: "]),
    (CauseKind::Timeout, &["collective operation timeout", "timed out waiting for clients", "socket timeout"]),
    (
        CauseKind::Access,
        &["gatedrepoerror", "gated repo", "401 client error", "403 client error", "invalid user token"],
    ),
    (
        CauseKind::Device,
        &["device-side assert", "cuda error", "hip error", "illegal memory access", "cudnn_status", "cublas_status"],
    ),
    (CauseKind::MissingModule, &["modulenotfounderror", "no module named", "importerror: "]),
    (CauseKind::MissingFile, &["filenotfounderror", "[errno 2]", "notadirectoryerror"]),
];
/// What ranks report when another rank has stopped.
const DISCONNECT_KEYWORDS: [&str; 7] = [
    "remote process exited",
    "remote process exiting",
    "connection closed by",
    "connection reset by peer",
    "broken pipe",
    "connection was likely closed",
    "distnetworkerror",
];
/// Keywords of network libraries.
const NETWORK_KEYWORDS: [&str; 6] = ["nccl", "rccl", "gloo", "distbackenderror", "distnetworkerror", "c10d"];
/// Exceptions of configuration parsers.
const CONFIG_EXCEPTIONS: [&str; 9] = [
    "json.decoder.jsondecodeerror",
    "jsondecodeerror",
    "tomldecodeerror",
    "yaml.",
    "validationerror",
    "configerror",
    "configurationerror",
    "argparse.",
    "omegaconf.",
];

/// Classifies an exception by its line and its message.
pub fn classify(headline: &str, message: &str) -> CauseKind {
    let (headline, all) = (headline.to_lowercase(), message.to_lowercase());
    let name = headline.split(':').next().unwrap_or_default();
    let any = |words: &[&str], text: &str| words.iter().any(|keyword| text.contains(keyword));
    if name == "keyboardinterrupt" {
        return CauseKind::Interrupted;
    }
    if any(&NETWORK_KEYWORDS, &all) && any(&DISCONNECT_KEYWORDS, &all) {
        return CauseKind::Disconnected;
    }
    if let Some((kind, _)) = KEYWORDS.iter().find(|(_, words)| any(words, &headline)) {
        return *kind;
    }
    if reports_nan_loss(&headline) {
        return CauseKind::NotANumber;
    }
    if any(&CONFIG_EXCEPTIONS, name)
        || (name == "valueerror" && any(&["config", "argument", "--", "option"], &headline))
    {
        return CauseKind::Configuration;
    }
    KEYWORDS.iter().find(|(_, words)| any(words, &all)).map_or(CauseKind::Exception, |(kind, _)| *kind)
}

/// Returns whether a line reports a loss that is not a number.
pub fn reports_nan_loss(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let is_nan = words.any(|word| matches!(word, "nan" | "nans"));
    is_nan && (text.contains("loss") || text.contains("gradient") || text.contains("grad norm"))
}
