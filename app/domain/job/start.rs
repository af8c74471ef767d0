//! Where the first attempt of a job that is run again begins.

use std::fmt;

use crate::domain::ids::{Attempt, JobId};

/// From where. Later attempts go on from what the job itself has saved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// From the newest checkpoint of the jobs that it runs again, if there is one.
    #[default]
    Newest,
    /// From the beginning.
    Scratch,
    /// From this one.
    Checkpoint(SavedBy),
}

/// A checkpoint and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedBy {
    /// The job.
    pub job: JobId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The checkpoint's directory.
    pub name: String,
}

impl fmt::Display for Start {
    /// As the database has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest => f.write_str("newest"),
            Self::Scratch => f.write_str("scratch"),
            Self::Checkpoint(SavedBy { job, attempt, name }) => write!(f, "{job}/{attempt}/{name}"),
        }
    }
}

impl Start {
    /// The inverse of its text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "newest" => Some(Self::Newest),
            "scratch" => Some(Self::Scratch),
            text => {
                let mut parts = text.splitn(3, '/');
                let (job, attempt, name) = (parts.next()?, parts.next()?, parts.next()?);
                let attempt = Attempt(attempt.parse().ok()?);
                Some(Self::Checkpoint(SavedBy { job: JobId::parse(job).ok()?, attempt, name: name.to_owned() }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn it_is_read_as_it_was_written() {
        let job = JobId::new(Timestamp(1), [7; 10]);
        let saved = SavedBy { job, attempt: Attempt(2), name: "checkpoint-500".to_owned() };
        for start in [Start::Newest, Start::Scratch, Start::Checkpoint(saved)] {
            assert_eq!(Start::parse(&start.to_string()), Some(start));
        }
        assert_eq!(Start::parse("elsewhere"), None);
    }
}
