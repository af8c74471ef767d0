//! When a shown value is fetched again: at once after a change, and never twice at the same time. After a fetch there
//! is a pause in proportion to its duration, so that the page stays responsive under many changes. Failed fetches are
//! repeated with back-off.

use std::time::Duration;

/// The pause after a fetch, as a multiple of the time that it took to fetch and render.
const PAUSE_FACTOR: u32 = 3;
/// The longest pause after a slow fetch.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The longest delay after a failure, in seconds.
const MAX_BACKOFF_SECONDS: u64 = 30;

/// The delay before the next attempt, after a number of failed ones: 1 s, 2 s, 4 s, and so on.
pub(crate) fn retry_delay(failed: u32) -> Duration {
    Duration::from_secs(MAX_BACKOFF_SECONDS.min(1 << failed.saturating_sub(1).min(8)))
}

/// The state of a shown value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RefreshState {
    /// The value is current.
    #[default]
    Idle,
    /// A request is running. `changed`: there was a change since; `failed`: the number of failures in a row.
    Fetching { changed: bool, failed: u32 },
    /// The value was rendered a moment ago. `changed`: there was a change since.
    CoolingDown { changed: bool },
    /// The last requests have failed.
    BackingOff { failed: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefreshEvent {
    /// A topic has changed.
    Changed,
    /// The value was rendered, `after` this time since its request; `pace` is the minimum pause.
    Rendered { after: Duration, pace: Duration },
    /// The request failed; `again`: a later one may succeed.
    Failed { again: bool },
    /// The pause or delay is over.
    TimerElapsed,
    /// The stream is live again.
    Reconnected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefreshAction {
    /// Send a request.
    Fetch,
    /// Send [`RefreshEvent::TimerElapsed`] after this time.
    Wait(Duration),
}

impl RefreshState {
    /// The next state, and what to do.
    pub fn handle(self, event: RefreshEvent) -> (Self, Option<RefreshAction>) {
        match (self, event) {
            (Self::Idle, RefreshEvent::Changed) | (Self::CoolingDown { changed: true }, RefreshEvent::TimerElapsed) => {
                (Self::Fetching { changed: false, failed: 0 }, Some(RefreshAction::Fetch))
            }
            (Self::BackingOff { failed }, RefreshEvent::TimerElapsed | RefreshEvent::Reconnected) => {
                (Self::Fetching { changed: false, failed }, Some(RefreshAction::Fetch))
            }
            (Self::Fetching { failed, .. }, RefreshEvent::Changed) => (Self::Fetching { changed: true, failed }, None),
            (Self::CoolingDown { .. }, RefreshEvent::Changed) => (Self::CoolingDown { changed: true }, None),
            (Self::Fetching { changed, .. }, RefreshEvent::Rendered { after, pace }) => (
                Self::CoolingDown { changed },
                Some(RefreshAction::Wait(MAX_PAUSE.min(after * PAUSE_FACTOR).max(pace))),
            ),
            (Self::Fetching { failed, .. }, RefreshEvent::Failed { again }) => {
                let failed = failed.saturating_add(1);
                (Self::BackingOff { failed }, again.then(|| RefreshAction::Wait(retry_delay(failed))))
            }
            (Self::CoolingDown { changed: false }, RefreshEvent::TimerElapsed) => (Self::Idle, None),
            // A change does not shorten a delay, and events of a finished request are ignored.
            (state, _) => (state, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: RefreshEvent = RefreshEvent::Rendered { after: Duration::from_millis(20), pace: Duration::ZERO };

    /// The actions that follow from a sequence of events.
    fn actions_for(events: &[RefreshEvent]) -> Vec<Option<RefreshAction>> {
        let step = |state: &mut RefreshState, event: &RefreshEvent| {
            let (next, action) = state.handle(*event);
            *state = next;
            Some(action)
        };
        events.iter().scan(RefreshState::Idle, step).collect()
    }

    #[test]
    fn change_is_fetched_immediately_and_once_at_a_time() {
        let pause = Some(RefreshAction::Wait(Duration::from_millis(60)));
        assert_eq!(
            actions_for(&[RefreshEvent::Changed, RefreshEvent::Changed, RefreshEvent::Changed, SHOWN]),
            [Some(RefreshAction::Fetch), None, None, pause]
        );
    }

    #[test]
    fn change_during_a_refresh_is_fetched_after_the_pause() {
        let after = |events: &[RefreshEvent]| *actions_for(events).last().unwrap();
        assert_eq!(after(&[RefreshEvent::Changed, SHOWN, RefreshEvent::TimerElapsed]), None);
        assert_eq!(
            after(&[RefreshEvent::Changed, RefreshEvent::Changed, SHOWN, RefreshEvent::TimerElapsed]),
            Some(RefreshAction::Fetch)
        );
        assert_eq!(
            after(&[RefreshEvent::Changed, SHOWN, RefreshEvent::Changed, RefreshEvent::TimerElapsed]),
            Some(RefreshAction::Fetch)
        );
        assert_eq!(
            after(&[RefreshEvent::Changed, SHOWN, RefreshEvent::TimerElapsed, RefreshEvent::Changed]),
            Some(RefreshAction::Fetch)
        );
    }

    #[test]
    fn pause_after_a_refresh_is_limited() {
        let slow = RefreshEvent::Rendered { after: Duration::from_mins(1), pace: Duration::ZERO };
        assert_eq!(actions_for(&[RefreshEvent::Changed, slow]).pop(), Some(Some(RefreshAction::Wait(MAX_PAUSE))));
    }

    #[test]
    fn changes_within_the_pace_wait_for_its_end() {
        let paced = RefreshEvent::Rendered { after: Duration::from_millis(20), pace: Duration::from_secs(5) };
        let pause = Some(RefreshAction::Wait(Duration::from_secs(5)));
        let events =
            [RefreshEvent::Changed, paced, RefreshEvent::Changed, RefreshEvent::Changed, RefreshEvent::TimerElapsed];
        assert_eq!(actions_for(&events), [Some(RefreshAction::Fetch), pause, None, None, Some(RefreshAction::Fetch)]);
    }

    #[test]
    fn failed_fetch_is_repeated_with_back_off() {
        let failed = RefreshEvent::Failed { again: true };
        let mut events = vec![RefreshEvent::Changed];
        events.extend([failed, RefreshEvent::Changed, RefreshEvent::TimerElapsed].repeat(7));
        let pauses: Vec<u64> = actions_for(&events)
            .into_iter()
            .filter_map(|action| match action? {
                RefreshAction::Wait(pause) => Some(pause.as_secs()),
                RefreshAction::Fetch => None,
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(retry_delay(u32::MAX), Duration::from_secs(30));
        // A success resets the delay.
        events.extend([SHOWN, RefreshEvent::TimerElapsed, RefreshEvent::Changed, failed]);
        assert_eq!(actions_for(&events).pop(), Some(Some(RefreshAction::Wait(Duration::from_secs(1)))));
    }

    #[test]
    fn reconnected_server_is_requested_immediately() {
        let failed = [RefreshEvent::Changed, RefreshEvent::Failed { again: true }, RefreshEvent::Reconnected];
        assert_eq!(actions_for(&failed).pop(), Some(Some(RefreshAction::Fetch)));
        let rejected = actions_for(&[
            RefreshEvent::Changed,
            RefreshEvent::Failed { again: false },
            RefreshEvent::Changed,
            RefreshEvent::Reconnected,
        ]);
        assert_eq!(rejected, [Some(RefreshAction::Fetch), None, None, Some(RefreshAction::Fetch)]);
        assert_eq!(
            actions_for(&[RefreshEvent::Reconnected, RefreshEvent::Changed, RefreshEvent::Reconnected]),
            [None, Some(RefreshAction::Fetch), None]
        );
    }

    #[test]
    fn last_change_is_always_fetched() {
        // In each sequence of six events, the last change is followed by a request, once all timers and responses have
        // arrived.
        let kinds = [RefreshEvent::Changed, SHOWN, RefreshEvent::TimerElapsed, RefreshEvent::Failed { again: true }];
        for number in 0..4_usize.pow(6) {
            let events: Vec<RefreshEvent> = (0..6).map(|digit| kinds[number / 4_usize.pow(digit) % 4]).collect();
            let ending = [SHOWN, RefreshEvent::TimerElapsed, SHOWN, RefreshEvent::TimerElapsed];
            let all: Vec<RefreshEvent> = events.iter().copied().chain(ending).collect();
            let actions = actions_for(&all);
            let Some(last) = all.iter().rposition(|event| *event == RefreshEvent::Changed) else { continue };
            assert!(actions[last..].contains(&Some(RefreshAction::Fetch)), "{events:?}");
        }
    }
}
