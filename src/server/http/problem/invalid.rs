//! Problems of what somebody sent.

use app::domain::password::{LONGEST, SHORTEST, Weakness};
use axum::http::StatusCode;

use super::{ApiError, configs, misread};
use crate::service::refusal::Invalid;

/// An input that is not usable.
pub(super) fn input(invalid: &Invalid) -> ApiError {
    let (code, detail) = match invalid {
        Invalid::Name(name) => (
            "invalid_name",
            format!(
                "{name:?} is not usable as a name: names have 1 to 64 characters, and none that controls a terminal, turns the direction of writing or cannot be seen."
            ),
        ),
        Invalid::SecretName(name) => (
            "invalid_secret_name",
            format!(
                "{name:?} is no name of a secret: those are variables like HF_TOKEN, WANDB_API_KEY or AWS_ACCESS_KEY_ID, which end in _TOKEN, _KEY, _SECRET, _PASSWORD, _PASSPHRASE, _CREDENTIALS, _AUTH, _ID, _USER, _USERNAME or _DSN."
            ),
        ),
        Invalid::Labels(bad) => ("invalid_labels", format!("The labels are not usable: {bad}.")),
        Invalid::Network(text) => (
            "invalid_network",
            format!("{text:?} is no network: write one like 10.0.0.0/8 or 2001:db8::/32, or a single address."),
        ),
        Invalid::Status(word) => ("invalid_status", format!("{word:?} is no status that a worker can report.")),
        Invalid::Password(weakness) => ("weak_password", weak_password(*weakness)),
        Invalid::Range { field, allowed } => ("out_of_range", format!("`{field}` must be {allowed}.")),
        Invalid::Pattern(error) => ("invalid_pattern", format!("The regular expression is not usable: {error}.")),
        Invalid::PatternTooCostly => (
            "pattern_too_costly",
            "Searching this log with the pattern takes too much time. Use smaller repetitions (`.*` in place of \
             `.{1000}`), fewer alternatives and classes such as `[a-z]` in place of `\\w`, or look for a plain text."
                .to_owned(),
        ),
        Invalid::Search(misread) => ("invalid_search", misread::in_words(misread)),
        Invalid::Path(path) => (
            "invalid_path",
            format!(
                "{path:?} is not usable as a path: paths are relative, without `..`, and without characters that cannot be seen or turn the direction of writing."
            ),
        ),
        Invalid::Code(path) => ("config_code", configs::code(path)),
        Invalid::NoConfigJson => ("config_json_missing", "A configuration needs a file `config.json`.".to_owned()),
        Invalid::BrokenJson { file, error } => {
            ("config_json_broken", format!("`{file}` is no usable JSON object: {error}."))
        }
        Invalid::TooMuch { what, limit } => ("too_much", format!("More than {limit} {what} are not taken.")),
        Invalid::OtherWorker => {
            ("other_worker", "The worker's id is not the one that the token belongs to.".to_owned())
        }
    };
    let mut error = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail);
    if let Invalid::Search(misread) = invalid {
        let parts = misread::parts(misread).map(|(name, value)| (name.to_owned(), value.into()));
        error.extra.extend(parts);
    }
    if let Invalid::Password(weakness) = invalid {
        error.extra.insert("why".to_owned(), weakness.as_str().into());
    }
    if let Invalid::Range { field, .. } = invalid {
        error.extra.insert("field".to_owned(), (*field).into());
    }
    error
}

fn weak_password(weakness: Weakness) -> String {
    match weakness {
        Weakness::Short => format!("The password is too short. Use at least {SHORTEST} characters."),
        Weakness::Long => format!("The password is too long. Use at most {LONGEST} bytes."),
        Weakness::Guessable => {
            "The password is easy to guess: it is a common one, a pattern, or made of obvious words \
                                such as your name. Use several unrelated words, or let a password manager make one."
                .to_owned()
        }
        Weakness::Breached => {
            "The password is known from breaches, and guessers try those first. Choose one that you use nowhere else."
                .to_owned()
        }
        Weakness::Listed => {
            "The password is on this server's list of passwords that must not be used. Choose another one.".to_owned()
        }
    }
}
