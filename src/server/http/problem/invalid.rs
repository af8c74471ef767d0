//! Problems of invalid input.

use app::domain::password::{MAX_BYTES, MIN_CHARS, PasswordWeakness};
use app::protocol::problem::FieldError;
use axum::http::StatusCode;
use serde_json::Value;

use super::{ApiError, configs, query_parse};
use crate::service::error::{InvalidField, InvalidInput};

/// Returns the problem of an invalid input.
pub(super) fn invalid_input(invalid_input: &InvalidInput) -> ApiError {
    let (code, detail) = match invalid_input {
        InvalidInput::Name(name) => (
            "invalid_name",
            format!(
                "{name:?} is not a valid name: use 1 to 64 characters, without control characters, changes of writing direction or invisible characters."
            ),
        ),
        InvalidInput::SecretName(name) => (
            "invalid_secret_name",
            format!(
                "{name:?} is no name of a secret: those are variables like HF_TOKEN, WANDB_API_KEY or AWS_ACCESS_KEY_ID, which end in _TOKEN, _KEY, _SECRET, _PASSWORD, _PASSPHRASE, _CREDENTIALS, _AUTH, _ID, _USER, _USERNAME or _DSN."
            ),
        ),
        InvalidInput::Labels(bad) => ("invalid_labels", format!("Invalid labels: {bad}.")),
        InvalidInput::Network(text) => (
            "invalid_network",
            format!("{text:?} is not a network: write one like 10.0.0.0/8 or 2001:db8::/32, or a single address."),
        ),
        InvalidInput::Status(word) => ("invalid_status", format!("A worker cannot report the status {word:?}.")),
        InvalidInput::Password(weakness) => ("weak_password", weak_password_text(*weakness)),
        InvalidInput::OutOfRange { field, allowed } => ("out_of_range", format!("`{field}` must be {allowed}.")),
        InvalidInput::Pattern(error) => ("invalid_pattern", format!("Invalid regular expression: {error}.")),
        InvalidInput::PatternTooCostly => (
            "pattern_too_costly",
            "Searching this log with the pattern takes too much time. Use smaller repetitions (`.*` instead of \
             `.{1000}`), fewer alternatives and classes such as `[a-z]` instead of `\\w`, or search for plain text."
                .to_owned(),
        ),
        InvalidInput::Search(misread) => ("invalid_search", query_parse::describe(misread)),
        InvalidInput::Path(path) => (
            "invalid_path",
            format!(
                "{path:?} is not a valid path: paths are relative, without `..`, invisible characters or changes of writing direction."
            ),
        ),
        InvalidInput::Code(path) => ("config_code", configs::code_file_text(path)),
        InvalidInput::ConfigJsonMissing => {
            ("config_json_missing", "A configuration needs a file `config.json`.".to_owned())
        }
        InvalidInput::InvalidJson { file, error } => {
            ("config_json_broken", format!("`{file}` is no usable JSON object: {error}."))
        }
        InvalidInput::TooMuch { what, limit } => {
            ("too_large", format!("Too many: at most {limit} {what} are allowed."))
        }
        InvalidInput::OtherWorker => ("other_worker", "The worker ID is not that of the token.".to_owned()),
    };
    let mut error = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail);
    if let InvalidInput::Search(misread) = invalid_input {
        let parts = query_parse::parameters(misread).map(|(name, value)| (name.to_owned(), value.into()));
        error.extra.extend(parts);
    }
    if let InvalidInput::Password(weakness) = invalid_input {
        error.extra.insert("why".to_owned(), weakness.as_str().into());
    }
    if let InvalidInput::OutOfRange { field, .. } = invalid_input {
        error.extra.insert("field".to_owned(), (*field).into());
    }
    error
}

/// Returns the problem of several invalid fields.
pub(super) fn invalid_fields(wrong: &[InvalidField]) -> ApiError {
    let mut error = wrong.first().map_or_else(super::panicked, |first| invalid_input(&first.invalid));
    error.errors = wrong.iter().map(field_error).collect();
    error
}

fn field_error(InvalidField { field, invalid }: &InvalidField) -> FieldError {
    let error = invalid_input(invalid);
    let why = error.extra.get("why").and_then(Value::as_str).map(str::to_owned);
    FieldError { field: field.to_string(), code: error.code.to_owned(), detail: error.detail, why }
}

fn weak_password_text(weakness: PasswordWeakness) -> String {
    match weakness {
        PasswordWeakness::TooShort => format!("The password is too short. Use at least {MIN_CHARS} characters."),
        PasswordWeakness::TooLong => format!("The password is too long. Use at most {MAX_BYTES} bytes."),
        PasswordWeakness::Guessable => {
            "The password is easy to guess: it is a common one, a pattern, or made of obvious words \
                                such as your name. Use several unrelated words, or let a password manager make one."
                .to_owned()
        }
        PasswordWeakness::Breached => {
            "The password is known from breaches, and attackers try those first. Choose one that you use nowhere else."
                .to_owned()
        }
        PasswordWeakness::Listed => "The password is on this server's blocklist. Choose another one.".to_owned(),
    }
}
