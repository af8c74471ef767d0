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

pub(in crate::store::sql) use ended_states;
pub(in crate::store::sql) use live_states;

#[cfg(test)]
mod tests {
    use app::protocol::status::JobStatus;

    fn words(list: &str) -> Vec<&str> {
        list.trim_matches(['(', ')']).split(", ").map(|word| word.trim_matches('\'')).collect()
    }

    #[test]
    fn each_state_is_in_the_list_that_its_methods_say() {
        for status in JobStatus::ALL {
            let lists =
                (words(live_states!()).contains(&status.as_str()), words(ended_states!()).contains(&status.as_str()));
            assert_eq!(lists, (!status.is_terminal(), status.is_terminal()), "{status:?}");
        }
        assert_eq!(words(live_states!()).len() + words(ended_states!()).len(), JobStatus::ALL.len());
    }
}
