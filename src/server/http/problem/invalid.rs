//! Problems of invalid input.

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::job_search::columns::{JobListColumn, MAX_COLUMNS};
use app::domain::job_search::order::JobColumn;
use app::domain::labels::{LabelsError, MAX_LABEL_CHARS, MAX_LABELS};
use app::domain::password::{MAX_BYTES, MIN_CHARS, PasswordWeakness};
use app::protocol::jobs::overrides::{MAX_DIFF_BYTES, MAX_ENTRY_BYTES, MAX_OVERRIDES};
use axum::http::StatusCode;

use super::{ApiError, Sentence, escaped, query_parse};
use crate::service::error::{InvalidField, InvalidInput};

/// Returns the problem of an invalid input.
pub(super) fn invalid_input(invalid: &InvalidInput) -> ApiError {
    let error = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, sentence(invalid));
    match invalid {
        InvalidInput::Search(parse_error) => {
            query_parse::parameters(parse_error).fold(error, |error, (name, value)| error.with(name, value))
        }
        InvalidInput::Password(weakness) => error.with("why", weakness.as_str()),
        InvalidInput::OutOfRange { field, .. } => error.with("field", *field),
        _ => error,
    }
}

/// Returns the problem of several invalid fields.
pub(super) fn invalid_fields(fields: &[InvalidField]) -> ApiError {
    let mut error = fields.first().map_or_else(super::panicked, |first| invalid_input(&first.invalid));
    error.fields = fields.iter().map(|field| (field.field.to_string(), invalid_input(&field.invalid))).collect();
    error
}

fn sentence(invalid: &InvalidInput) -> Sentence {
    match invalid {
        InvalidInput::Name(name) => Sentence::InvalidName { name: escaped(name) },
        InvalidInput::SecretName(name) => Sentence::InvalidSecretName { name: escaped(name) },
        InvalidInput::Labels(error) => labels_sentence(error),
        InvalidInput::Network(text) => Sentence::InvalidNetwork { network: escaped(text) },
        InvalidInput::Status(status) => Sentence::InvalidStatus { status: escaped(status) },
        InvalidInput::Password(weakness) => password_sentence(*weakness),
        InvalidInput::OutOfRange { field, allowed } => out_of_range((*field).to_owned(), *allowed),
        InvalidInput::Pattern(why) => Sentence::InvalidPattern { why: why.clone() },
        InvalidInput::PatternTooCostly => Sentence::PatternTooCostly { repetition: ".{1000}".to_owned() },
        InvalidInput::Search(error) => query_parse::sentence(error),
        InvalidInput::Path(path) => Sentence::InvalidPath { path: escaped(path) },
        InvalidInput::Code(path) => Sentence::ConfigCode { path: escaped(path) },
        InvalidInput::ConfigJsonMissing => Sentence::ConfigJsonMissing,
        InvalidInput::InvalidJson { file, error } => {
            Sentence::ConfigJsonBrokenSyntax { file: file.clone(), why: error.clone() }
        }
        InvalidInput::NotAJsonObject { file } => Sentence::ConfigJsonBrokenNoObject { file: file.clone() },
        InvalidInput::TooMuch { items, limit } => too_large(*items, limit.to_string()),
        InvalidInput::OtherWorker => Sentence::OtherWorker,
    }
}

fn labels_sentence(error: &LabelsError) -> Sentence {
    match error {
        LabelsError::TooMany(number) => {
            Sentence::InvalidLabelsNumber { number: number.to_string(), max: MAX_LABELS.to_string() }
        }
        LabelsError::InvalidEntry(key) => {
            Sentence::InvalidLabelsEntry { key: escaped(key), max: MAX_LABEL_CHARS.to_string() }
        }
        LabelsError::MissingValue(label) => Sentence::InvalidLabelsValue { label: escaped(label) },
    }
}

fn password_sentence(weakness: PasswordWeakness) -> Sentence {
    match weakness {
        PasswordWeakness::TooShort => Sentence::WeakPasswordShort { min: MIN_CHARS.to_string() },
        PasswordWeakness::TooLong => Sentence::WeakPasswordLong { max: MAX_BYTES.to_string() },
        PasswordWeakness::Guessable => Sentence::WeakPasswordGuessable,
        PasswordWeakness::Breached => Sentence::WeakPasswordBreached,
        PasswordWeakness::Listed => Sentence::WeakPasswordListed,
    }
}

fn out_of_range(field: String, allowed: AllowedValues) -> Sentence {
    use AllowedValues as A;
    match allowed {
        A::Number { min, max } => Sentence::OutOfRangeNumber { field, min: min.to_string(), max: max.to_string() },
        A::OptionalNumber { min, max } => {
            Sentence::OutOfRangeOptionalNumber { field, min: min.to_string(), max: max.to_string() }
        }
        A::Characters { min, max } => {
            Sentence::OutOfRangeCharacters { field, min: min.to_string(), max: max.to_string() }
        }
        A::VisibleCharacters { min, max } => {
            Sentence::OutOfRangeVisibleCharacters { field, min: min.to_string(), max: max.to_string() }
        }
        A::Bytes { min, max } => Sentence::OutOfRangeBytes { field, min: min.to_string(), max: max.to_string() },
        A::Text { min, max } => Sentence::OutOfRangeText { field, min: min.to_string(), max: max.to_string() },
        A::Line { max } => Sentence::OutOfRangeLine { field, max: max.to_string() },
        A::Tags { max, max_chars } => {
            Sentence::OutOfRangeTags { field, max: max.to_string(), max_chars: max_chars.to_string() }
        }
        A::Length { max } => Sentence::OutOfRangeLength { field, max: max.to_string() },
        A::Seconds { days } => {
            let seconds = (days * 86_400).to_string();
            Sentence::OutOfRangeSeconds { field, seconds, days: days.to_string() }
        }
        A::Period { days } => Sentence::OutOfRangePeriod { field, days: days.to_string() },
        A::LeftOut { given } => Sentence::OutOfRangeLeftOut { field, given: given.to_owned() },
        A::TokenDays { max } => Sentence::OutOfRangeTokenDays { field, max: max.to_string() },
        A::DroppedBytes { min } => Sentence::OutOfRangeDroppedBytes { field, min: min.to_string() },
        A::JobIds { min, max } => Sentence::OutOfRangeJobIds { field, min: min.to_string(), max: max.to_string() },
        A::Positive => Sentence::OutOfRangePositive { field },
        A::Runtime => Sentence::OutOfRangeRuntime { field },
        A::Duration => Sentence::OutOfRangeDuration { field },
        A::Accelerator => Sentence::OutOfRangeAccelerator { field },
        A::Role => Sentence::OutOfRangeRole { field },
        A::Order => Sentence::OutOfRangeOrder { field },
        A::JobOrder => {
            Sentence::OutOfRangeJobOrder { field, columns: JobColumn::ALL.map(JobColumn::as_str).join(", ") }
        }
        A::JobColumns => {
            let known: Vec<String> = JobListColumn::known().map(|column| column.to_string()).collect();
            Sentence::OutOfRangeJobColumns { field, max: MAX_COLUMNS.to_string(), columns: known.join(", ") }
        }
        A::JobsQuery => Sentence::OutOfRangeJobsQuery { field },
        A::Grouping => Sentence::OutOfRangeGrouping { field },
        A::AccountName => Sentence::OutOfRangeAccountName { field },
        A::Cursor => Sentence::OutOfRangeCursor { field },
        A::Moment => Sentence::OutOfRangeMoment { field },
        A::Expiry => Sentence::OutOfRangeExpiry { field },
        A::Overrides => Sentence::OutOfRangeOverrides {
            field,
            settings: MAX_OVERRIDES.to_string(),
            value_bytes: MAX_ENTRY_BYTES.to_string(),
            total_bytes: MAX_DIFF_BYTES.to_string(),
        },
        A::Settings => Sentence::OutOfRangeSettings { field },
        A::StartPoint => Sentence::OutOfRangeStartPoint { field },
        A::Step => Sentence::OutOfRangeStep { field },
        A::CheckpointName => Sentence::OutOfRangeCheckpointName { field },
        A::CheckpointFiles => Sentence::OutOfRangeCheckpointFiles { field },
        A::FileSize => Sentence::OutOfRangeFileSize { field },
        A::FileDigest => Sentence::OutOfRangeFileDigest { field },
        A::SharedSample { step } => Sentence::OutOfRangeSharedSample { field, step: step.to_string() },
        A::ComparedJob => Sentence::OutOfRangeComparedJob { field },
        A::VoteButton => Sentence::OutOfRangeVoteButton { field },
    }
}

fn too_large(items: LimitedItems, limit: String) -> Sentence {
    match items {
        LimitedItems::Secrets => Sentence::TooLargeSecrets { limit },
        LimitedItems::Teams => Sentence::TooLargeTeams { limit },
        LimitedItems::TeamMembers => Sentence::TooLargeTeamMembers { limit },
        LimitedItems::Stars => Sentence::TooLargeStars { limit },
        LimitedItems::Votes => Sentence::TooLargeVotes { limit },
        LimitedItems::SavedViews => Sentence::TooLargeSavedViews { limit },
        LimitedItems::Gpus => Sentence::TooLargeGpus { limit },
        LimitedItems::Paths => Sentence::TooLargePaths { limit },
        LimitedItems::Points => Sentence::TooLargePoints { limit },
        LimitedItems::Metrics => Sentence::TooLargeMetrics { limit },
        LimitedItems::Attempts => Sentence::TooLargeAttempts { limit },
        LimitedItems::Passkeys => Sentence::TooLargePasskeys { limit },
        LimitedItems::LogBytes => Sentence::TooLargeLogBytes { limit },
        LimitedItems::LogGaps => Sentence::TooLargeLogGaps { limit },
        LimitedItems::Ids => Sentence::TooLargeIds { limit },
        LimitedItems::ReasonCharacters => Sentence::TooLargeReasonCharacters { limit },
        LimitedItems::Networks => Sentence::TooLargeNetworks { limit },
        LimitedItems::JobFiles => Sentence::TooLargeJobFiles { limit },
        LimitedItems::CheckpointFiles => Sentence::TooLargeCheckpointFiles { limit },
        LimitedItems::TelemetrySamples => Sentence::TooLargeTelemetrySamples { limit },
        LimitedItems::Files => Sentence::TooLargeFiles { limit },
        LimitedItems::ConfigBytes => Sentence::TooLargeConfigBytes { limit },
    }
}
