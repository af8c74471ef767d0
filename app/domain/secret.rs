//! Job secrets: their names, and which of them a job gets.

/// Minimum length of a value, in bytes: masking shorter values would make logs unreadable.
pub const MIN_VALUE_BYTES: usize = 8;
/// Maximum length of a value, in bytes.
pub const MAX_VALUE_BYTES: usize = 65_536;

/// Allowed suffixes of a secret's variable name. Other variables control programs (`PATH`, `LD_PRELOAD`, `PYTHONPATH`);
/// users who may train must not control a worker's host in this way.
const ALLOWED_SUFFIXES: [&str; 11] = [
    "_TOKEN",
    "_KEY",
    "_SECRET",
    "_PASSWORD",
    "_PASSPHRASE",
    "_CREDENTIALS",
    "_AUTH",
    "_ID",
    "_USER",
    "_USERNAME",
    "_DSN",
];

/// Prefix of the worker's own variables.
const RESERVED_PREFIX: &str = "SIMPLETUNER_";

/// Returns the variable name of a secret: `HF_TOKEN` for `hf_token`. None if the name is invalid: it must have 3 to 64
/// letters, digits and `_`, not start with a digit, and have an allowed suffix.
pub fn variable_name(name: &str) -> Option<String> {
    let name = name.to_ascii_uppercase();
    let has_valid_chars = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let starts_with_letter = name.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    let has_allowed_suffix = ALLOWED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    (has_valid_chars
        && starts_with_letter
        && has_allowed_suffix
        && name.len() <= 64
        && !name.starts_with(RESERVED_PREFIX))
    .then_some(name)
}

/// Returns whether a job with these requested secrets gets the one with this name. A job of an earlier version, which
/// has no list, gets all secrets.
pub fn is_granted(requested: Option<&[String]>, name: &str) -> bool {
    requested.is_none_or(|requested| requested.iter().any(|requested_name| requested_name == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_validated() {
        for (name, variable) in [
            ("HF_TOKEN", "HF_TOKEN"),
            ("hf_token", "HF_TOKEN"),
            ("Wandb_Api_Key", "WANDB_API_KEY"),
            ("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"),
            ("A_ID", "A_ID"),
            ("S3_2_SECRET", "S3_2_SECRET"),
        ] {
            assert_eq!(variable_name(name).as_deref(), Some(variable));
        }
        let longest = format!("{}_KEY", "A".repeat(60));
        assert_eq!(variable_name(&longest), Some(longest));
        for bad in [
            "",
            "TOKEN",
            "_TOKEN",
            "1_TOKEN",
            "_A_TOKEN",
            "PATH",
            "LD_PRELOAD",
            "PYTHONPATH",
            "HF_TOKENS",
            "HF TOKEN",
            "HF-TOKEN",
            "HF_TÖKEN",
            "A\0_TOKEN",
            "A=B_TOKEN",
            "SIMPLETUNER_UPLOAD_TOKEN",
            "simpletuner_job_id",
            &format!("{}_KEY", "A".repeat(61)),
        ] {
            assert_eq!(variable_name(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn job_without_a_list_gets_all_secrets() {
        let granted_names = ["HF_TOKEN".to_owned()];
        assert!(is_granted(None, "X_KEY") && is_granted(Some(&granted_names), "HF_TOKEN"));
        assert!(!is_granted(Some(&granted_names), "X_KEY") && !is_granted(Some(&[]), "HF_TOKEN"));
    }
}
