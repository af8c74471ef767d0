//! The states of jobs in SQL.

/// The states of jobs that have not ended, as an SQL list.
macro_rules! live_states {
    () => {
        "('queued', 'offered', 'starting', 'running', 'cancelling')"
    };
}

/// The states of jobs that have ended, as an SQL list; the partial index `jobs_ended` has the same condition.
macro_rules! ended_states {
    () => {
        "('completed', 'failed', 'cancelled')"
    };
}

/// The states in which an attempt has the lease of a job, as an SQL list.
macro_rules! leased_states {
    () => {
        "('offered', 'starting', 'running', 'cancelling')"
    };
}

pub(in crate::store::sql) use ended_states;
pub(in crate::store::sql) use leased_states;
pub(in crate::store::sql) use live_states;

#[cfg(test)]
mod tests {
    use app::domain::job_status::JobStatus;

    #[test]
    fn lists_agree_with_the_facts_of_each_status() {
        for status in JobStatus::ALL {
            let is_in = |list: &str| list.contains(&format!("'{}'", status.as_str()));
            assert_eq!(is_in(live_states!()), !status.is_terminal(), "{status:?}");
            assert_eq!(is_in(ended_states!()), status.is_terminal(), "{status:?}");
            assert_eq!(is_in(leased_states!()), status.has_lease(), "{status:?}");
        }
    }
}
