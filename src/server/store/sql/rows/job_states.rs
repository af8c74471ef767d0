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

/// Whether this word of a state is in the list of live states; none if it is in neither, or in both.
#[cfg(test)]
pub fn is_live(word: &str) -> Option<bool> {
    let quoted = format!("'{word}'");
    match (live_states!().contains(&quoted), ended_states!().contains(&quoted)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// The words of all states in the lists.
#[cfg(test)]
pub fn all_words() -> std::collections::BTreeSet<&'static str> {
    [live_states!(), ended_states!()].iter().flat_map(|list| list.split('\'').skip(1).step_by(2)).collect()
}
