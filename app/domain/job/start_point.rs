//! Where the first attempt of a retried job starts.

use std::fmt;

use crate::domain::ids::{AttemptNumber, JobId};

/// The start of the first attempt. Later attempts resume from the job's own checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StartPoint {
    /// The newest checkpoint of the retried jobs, if there is one.
    #[default]
    NewestCheckpoint,
    /// From scratch.
    Scratch,
    /// This checkpoint.
    Checkpoint(CheckpointRef),
}

/// A checkpoint and the attempt that created it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRef {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The name of the checkpoint's directory.
    pub name: String,
}

impl fmt::Display for StartPoint {
    /// The format in the database.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewestCheckpoint => f.write_str("newest"),
            Self::Scratch => f.write_str("scratch"),
            Self::Checkpoint(CheckpointRef { job, attempt, name }) => write!(f, "{job}/{attempt}/{name}"),
        }
    }
}

impl StartPoint {
    /// Parses the format of the database.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "newest" => Some(Self::NewestCheckpoint),
            "scratch" => Some(Self::Scratch),
            text => {
                let mut parts = text.splitn(3, '/');
                let (job, attempt, name) = (parts.next()?, parts.next()?, parts.next()?);
                let attempt = AttemptNumber(attempt.parse().ok()?);
                Some(Self::Checkpoint(CheckpointRef { job: JobId::parse(job).ok()?, attempt, name: name.to_owned() }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn start_point_round_trips() {
        let job = JobId::new(Timestamp(1), [7; 10]);
        let saved = CheckpointRef { job, attempt: AttemptNumber(2), name: "checkpoint-500".to_owned() };
        for start in [StartPoint::NewestCheckpoint, StartPoint::Scratch, StartPoint::Checkpoint(saved)] {
            assert_eq!(StartPoint::parse(&start.to_string()), Some(start));
        }
        assert_eq!(StartPoint::parse("elsewhere"), None);
    }
}
