//! What a field may contain, and what is limited in number. The server has a sentence for each.
#![expect(missing_docs, reason = "the server has a full sentence for each")]

/// What a field may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedValues {
    Number {
        min: u64,
        max: u64,
    },
    OptionalNumber {
        min: u64,
        max: u64,
    },
    /// A number above zero, or none.
    Positive,
    /// A time limit in seconds, or none.
    Runtime,
    /// A time limit with its unit, as in forms.
    Duration,
    /// A time in seconds, at most this many days.
    Seconds {
        days: u64,
    },
    Accelerator,
    Role,
    /// A column of the worker list, with its direction.
    Order,
    /// A column of the list of jobs, with its direction.
    JobOrder,
    /// Columns of the list of jobs.
    JobColumns,
    /// The query string of the list of jobs.
    JobsQuery,
    /// A label by which a list is grouped.
    Grouping,
    Characters {
        min: u64,
        max: u64,
    },
    VisibleCharacters {
        min: u64,
        max: u64,
    },
    /// A text of at most this many characters.
    Length {
        max: u64,
    },
    /// One line of at most this many characters.
    Line {
        max: u64,
    },
    /// Tags, each with at most this many characters.
    Tags {
        max: u64,
        max_chars: u64,
    },
    Bytes {
        min: u64,
        max: u64,
    },
    /// Text, by its length in bytes.
    Text {
        min: u64,
        max: u64,
    },
    /// A name of a user or a token.
    AccountName,
    /// A position in a list.
    Cursor,
    /// A time.
    Moment,
    /// The start of a period with a maximum length.
    Period {
        days: u64,
    },
    /// IDs of jobs, separated by commas.
    JobIds {
        min: u64,
        max: u64,
    },
    /// When a worker's token expires.
    Expiry,
    /// Nothing, where another field is given.
    LeftOut {
        given: &'static str,
    },
    /// In how many days an API token expires.
    TokenDays {
        max: u64,
    },
    /// The overrides of a job.
    Overrides,
    /// Overrides as lines of a form.
    Settings,
    /// Where a retry starts.
    StartPoint,
    /// The step of a checkpoint, or none.
    Step,
    CheckpointName,
    CheckpointFiles,
    /// The length of a gap in a log.
    DroppedBytes {
        min: u64,
    },
    FileSize,
    FileDigest,
    /// A sample of which both compared jobs have an image.
    SharedSample {
        step: u64,
    },
    /// One of the two compared jobs, or none.
    ComparedJob,
    /// A button of the blind vote.
    VoteButton,
}

impl AllowedValues {
    /// Returns the smallest and the largest number; none for what is not a number with limits.
    pub const fn limits(self) -> Option<(u64, u64)> {
        match self {
            Self::Number { min, max } | Self::OptionalNumber { min, max } => Some((min, max)),
            _ => None,
        }
    }

    /// Returns whether a number is within the limits, if there are any.
    pub fn contains(self, number: u64) -> bool {
        self.limits().is_none_or(|(min, max)| (min..=max).contains(&number))
    }
}

/// What is limited in number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedItems {
    Secrets,
    Teams,
    /// Of a team.
    TeamMembers,
    SavedViews,
    Stars,
    /// Votes of a user.
    Votes,
    Gpus,
    Paths,
    Points,
    Metrics,
    Attempts,
    Passkeys,
    LogBytes,
    LogGaps,
    Ids,
    ReasonCharacters,
    Networks,
    JobFiles,
    CheckpointFiles,
    TelemetrySamples,
    /// Of a configuration.
    Files,
    ConfigBytes,
}
