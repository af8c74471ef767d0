//! Secrets for jobs: what they may be called, and which of them a job is given.

/// The shortest value: anything shorter would blot out half of a log.
pub const SHORTEST: usize = 8;
/// The longest value, in bytes.
pub const LONGEST: usize = 65_536;

/// What the name of a variable that holds a secret ends with. Everything else in an environment steers programs (`PATH`,
/// `LD_PRELOAD`, `PYTHONPATH`), and who may train is not to reach that far into a worker's host.
const ENDS: [&str; 11] = [
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

/// The worker's own variables.
const OURS: &str = "SIMPLETUNER_";

/// The variable that a secret of this name fills: `hf_token` is `HF_TOKEN`. None if it is no name of a secret: 3 to 64
/// letters, digits and `_`, not beginning with a digit, ending in one of the words for secrets.
pub fn variable(name: &str) -> Option<String> {
    let name = name.to_ascii_uppercase();
    let plain = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    let ends = ENDS.iter().any(|end| name.ends_with(end));
    (plain && begins && ends && name.len() <= 64 && !name.starts_with(OURS)).then_some(name)
}

/// Whether a job that asks for `wanted` is given the secret of this name: a job of an earlier version, which says nothing of
/// secrets, is given all.
pub fn is_given(wanted: Option<&[String]>, name: &str) -> bool {
    wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for (name, is) in [
            ("HF_TOKEN", "HF_TOKEN"),
            ("hf_token", "HF_TOKEN"),
            ("Wandb_Api_Key", "WANDB_API_KEY"),
            ("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"),
            ("A_ID", "A_ID"),
            ("S3_2_SECRET", "S3_2_SECRET"),
        ] {
            assert_eq!(variable(name).as_deref(), Some(is));
        }
        let longest = format!("{}_KEY", "A".repeat(60));
        assert_eq!(variable(&longest), Some(longest));
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
            assert_eq!(variable(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_job_that_names_none_is_given_all() {
        let some = ["HF_TOKEN".to_owned()];
        assert!(is_given(None, "X_KEY") && is_given(Some(&some), "HF_TOKEN"));
        assert!(!is_given(Some(&some), "X_KEY") && !is_given(Some(&[]), "HF_TOKEN"));
    }
}
