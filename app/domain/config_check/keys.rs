//! The keys of `config.json` that this project knows. The trainer may know more.

use super::scan::{Value, is_number};

/// What the value of a key is. Numbers and switches may also be written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A text.
    Text,
    /// A whole number, from 0.
    Whole,
    /// A number.
    Number,
    /// An object, a list, or a text that is one of them or names a file.
    Webhooks,
}

impl KeyKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Text, Self::Whole, Self::Number, Self::Webhooks];

    /// Returns whether a value is of this kind. `null` is a key that is not set.
    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null)
            | (Self::Text, Value::Text(_))
            | (Self::Webhooks, Value::Text(_) | Value::List | Value::Object(_)) => true,
            (Self::Whole, Value::Number(text) | Value::Text(text)) => is_whole(text),
            (Self::Number, Value::Number(text) | Value::Text(text)) => is_number(text.trim()),
            (Self::Text | Self::Whole | Self::Number | Self::Webhooks, _) => false,
        }
    }

    /// Returns whether it is a number.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Whole | Self::Number)
    }
}

/// `1000`, `1e3` or `1000.0`.
fn is_whole(text: &str) -> bool {
    let text = text.trim();
    is_number(text) && text.parse::<f64>().is_ok_and(|number| number >= 0.0 && number.fract() == 0.0)
}

/// What the agent does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentUse {
    /// It sets another value.
    Replaces,
    /// It adds an entry.
    Extends,
    /// It sets `latest` if an earlier attempt left a checkpoint.
    Resumes,
}

impl AgentUse {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Replaces, Self::Extends, Self::Resumes];
}

/// A key of the trainer. Its sentence is `server_pages.configs.keys.NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownKey {
    /// The key without dashes.
    pub name: &'static str,
    /// What its value is.
    pub kind: KeyKind,
    /// What the agent does with it.
    pub agent: Option<AgentUse>,
    /// Whether the editor has a field for it.
    pub is_usual: bool,
}

const fn known(name: &'static str, kind: KeyKind) -> KnownKey {
    KnownKey { name, kind, agent: None, is_usual: false }
}

const fn usual(name: &'static str, kind: KeyKind) -> KnownKey {
    KnownKey { is_usual: true, ..known(name, kind) }
}

const fn changed(name: &'static str, kind: KeyKind, agent: AgentUse) -> KnownKey {
    KnownKey { agent: Some(agent), ..known(name, kind) }
}

/// The keys; those with a field first, in the order of the fields.
pub const KNOWN_KEYS: [KnownKey; 23] = [
    usual("model_type", KeyKind::Text),
    usual("model_family", KeyKind::Text),
    usual("learning_rate", KeyKind::Number),
    usual("train_batch_size", KeyKind::Whole),
    usual("max_train_steps", KeyKind::Whole),
    usual("lora_rank", KeyKind::Whole),
    usual("seed", KeyKind::Whole),
    usual("checkpointing_steps", KeyKind::Whole),
    known("checkpoints_total_limit", KeyKind::Whole),
    known("validation_steps", KeyKind::Whole),
    known("eval_steps_interval", KeyKind::Whole),
    known("logging_steps", KeyKind::Whole),
    known("lr_scheduler", KeyKind::Text),
    known("lr_warmup_steps", KeyKind::Whole),
    known("adam_weight_decay", KeyKind::Number),
    known("num_processes", KeyKind::Whole),
    known("data_backend_config", KeyKind::Text),
    known("user_prompt_library", KeyKind::Text),
    known("tracker_project_name", KeyKind::Text),
    known("tracker_run_name", KeyKind::Text),
    changed("output_dir", KeyKind::Text, AgentUse::Replaces),
    changed("resume_from_checkpoint", KeyKind::Text, AgentUse::Resumes),
    changed("webhook_config", KeyKind::Webhooks, AgentUse::Extends),
];

impl KnownKey {
    /// Returns the known key that is written `key` or `--key`.
    pub fn find(key: &str) -> Option<&'static Self> {
        KNOWN_KEYS.iter().find(|known| known.name == bare_name(key))
    }
}

/// The key without the dashes before it.
pub fn bare_name(key: &str) -> &str {
    key.strip_prefix("--").unwrap_or(key)
}

/// Returns the known key that an unknown one is probably meant to be, in the same spelling.
pub fn closest(key: &str) -> Option<String> {
    let name = bare_name(key).trim_matches(|letter: char| letter == '-' || letter.is_whitespace());
    let normalized: Vec<char> = name.to_lowercase().replace(['-', ' ', '.'], "_").chars().collect();
    let max = if normalized.len() < 6 { 1 } else { 2 };
    let distance = |known: &KnownKey| {
        let known_name: Vec<char> = known.name.chars().collect();
        // Most keys are excluded here, and a long text has no distance.
        let is_near = normalized.len().abs_diff(known_name.len()) <= max;
        is_near.then(|| edit_distance(&normalized, &known_name)).filter(|distance| *distance <= max)
    };
    let (_, found) = KNOWN_KEYS.iter().filter_map(|known| Some((distance(known)?, known))).min_by_key(|(by, _)| *by)?;
    let dashes = if key.starts_with("--") { "--" } else { "" };
    Some(format!("{dashes}{}", found.name))
}

/// The number of letters to insert, remove, replace, or swap with the next one.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, letter) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in b.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let shortest = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let is_swap = row > 0 && column > 0 && *letter == b[column - 1] && a[row - 1] == *other;
            current.push(if is_swap { shortest.min(before_last[column - 1] + 1) } else { shortest });
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or_default()
}
