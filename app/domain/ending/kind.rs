//! What kind of an end an exception is, by its words.

use super::Kind;

/// Words, and what they mean where they are found. The first that fits counts.
const BY_WORDS: [(Kind, &[&str]); 9] = [
    (Kind::OutOfMemory, &["out of memory", "outofmemoryerror", "memoryerror", "can't allocate memory"]),
    (Kind::DiskFull, &["[errno 28]", "no space left on device", "disk quota exceeded"]),
    (Kind::Killed, &["is killed by signal: killed"]),
    (Kind::Crash, &["is killed by signal: "]),
    (Kind::Timeout, &["collective operation timeout", "timed out waiting for clients", "socket timeout"]),
    (Kind::Access, &["gatedrepoerror", "gated repo", "401 client error", "403 client error", "invalid user token"]),
    (
        Kind::Device,
        &["device-side assert", "cuda error", "hip error", "illegal memory access", "cudnn_status", "cublas_status"],
    ),
    (Kind::MissingModule, &["modulenotfounderror", "no module named", "importerror: "]),
    (Kind::MissingFile, &["filenotfounderror", "[errno 2]", "notadirectoryerror"]),
];
/// What ranks say when another one is gone.
const DISCONNECTED: [&str; 7] = [
    "remote process exited",
    "remote process exiting",
    "connection closed by",
    "connection reset by peer",
    "broken pipe",
    "connection was likely closed",
    "distnetworkerror",
];
/// Who says it.
const NETWORK: [&str; 6] = ["nccl", "rccl", "gloo", "distbackenderror", "distnetworkerror", "c10d"];
/// Exceptions of what reads configurations.
const CONFIGURATION: [&str; 9] = [
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

/// By the exception's line and those of its message.
pub fn of(headline: &str, message: &str) -> Kind {
    let (headline, all) = (headline.to_lowercase(), message.to_lowercase());
    let name = headline.split(':').next().unwrap_or_default();
    let any = |words: &[&str], text: &str| words.iter().any(|word| text.contains(word));
    if name == "keyboardinterrupt" {
        return Kind::Interrupted;
    }
    if any(&NETWORK, &all) && any(&DISCONNECTED, &all) {
        return Kind::Disconnected;
    }
    if let Some((kind, _)) = BY_WORDS.iter().find(|(_, words)| any(words, &headline)) {
        return *kind;
    }
    if is_not_a_number(&headline) {
        return Kind::NotANumber;
    }
    if any(&CONFIGURATION, name) || (name == "valueerror" && any(&["config", "argument", "--", "option"], &headline)) {
        return Kind::Configuration;
    }
    BY_WORDS.iter().find(|(_, words)| any(words, &all)).map_or(Kind::Exception, |(kind, _)| *kind)
}

/// Whether a line says that the loss is no number any more.
pub fn is_not_a_number(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let is_nan = words.any(|word| matches!(word, "nan" | "nans"));
    is_nan && (text.contains("loss") || text.contains("gradient") || text.contains("grad norm"))
}
