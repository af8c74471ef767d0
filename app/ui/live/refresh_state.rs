//! When a page that shows something asks for it again: at once, never twice at the same time, and under a flood of changes so
//! seldom that the page has three quarters of its time for its reader. Where there is no answer it is asked again, after
//! pauses that grow.

use std::time::Duration;

/// Rests so many times as long as it took to ask and to show.
const REST_FACTOR: u32 = 3;
/// Whatever that took, it is not older than this and the asking itself.
const MAX_REST: Duration = Duration::from_secs(5);
/// No pause after a failure is longer, in seconds.
const MAX_BACKOFF_SECONDS: u64 = 30;

/// How long to wait before the next attempt, after so many that failed: 1 s, 2 s, 4 s and so on.
pub(crate) fn retry_delay(failed: u32) -> Duration {
    Duration::from_secs(MAX_BACKOFF_SECONDS.min(1 << failed.saturating_sub(1).min(8)))
}

/// Where the asking stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RefreshState {
    /// What is shown is the newest that is known of.
    #[default]
    Idle,
    /// An answer is on its way; whether there was news since, and how often in a row there was none.
    Fetching { news: bool, failed: u32 },
    /// It was shown a moment ago; whether there was news since.
    CoolingDown { news: bool },
    /// There was no answer, so often in a row.
    BackingOff { failed: u32 },
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefreshEvent {
    /// There is news.
    Changed,
    /// The answer is shown; so long after it was asked for. It is not asked for again within the pace.
    Rendered { after: Duration, pace: Duration },
    /// There was no answer; whether it may be better in a while.
    Failed { again: bool },
    /// The rest is over, or the pause.
    TimerElapsed,
    /// The server is there again.
    Reconnected,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefreshAction {
    /// Ask.
    Fetch,
    /// Say [`Event::Rested`] after so long.
    Wait(Duration),
}

impl RefreshState {
    /// The next state, and what is to be done.
    pub fn handle(self, event: RefreshEvent) -> (Self, Option<RefreshAction>) {
        match (self, event) {
            (Self::Idle, RefreshEvent::Changed) | (Self::CoolingDown { news: true }, RefreshEvent::TimerElapsed) => {
                (Self::Fetching { news: false, failed: 0 }, Some(RefreshAction::Fetch))
            }
            (Self::BackingOff { failed }, RefreshEvent::TimerElapsed | RefreshEvent::Reconnected) => {
                (Self::Fetching { news: false, failed }, Some(RefreshAction::Fetch))
            }
            (Self::Fetching { failed, .. }, RefreshEvent::Changed) => (Self::Fetching { news: true, failed }, None),
            (Self::CoolingDown { .. }, RefreshEvent::Changed) => (Self::CoolingDown { news: true }, None),
            (Self::Fetching { news, .. }, RefreshEvent::Rendered { after, pace }) => {
                (Self::CoolingDown { news }, Some(RefreshAction::Wait(MAX_REST.min(after * REST_FACTOR).max(pace))))
            }
            (Self::Fetching { failed, .. }, RefreshEvent::Failed { again }) => {
                let failed = failed.saturating_add(1);
                (Self::BackingOff { failed }, again.then(|| RefreshAction::Wait(retry_delay(failed))))
            }
            (Self::CoolingDown { news: false }, RefreshEvent::TimerElapsed) => (Self::Idle, None),
            // News hasten no pause; and of an asking that is over nothing comes any more.
            (state, _) => (state, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: RefreshEvent = RefreshEvent::Rendered { after: Duration::from_millis(20), pace: Duration::ZERO };

    /// What is done about these events, one after the other.
    fn done(events: &[RefreshEvent]) -> Vec<Option<RefreshAction>> {
        let step = |state: &mut RefreshState, event: &RefreshEvent| {
            let (next, action) = state.handle(*event);
            *state = next;
            Some(action)
        };
        events.iter().scan(RefreshState::Idle, step).collect()
    }

    #[test]
    fn news_are_asked_for_at_once_and_only_once_at_a_time() {
        let rest = Some(RefreshAction::Wait(Duration::from_millis(60)));
        assert_eq!(
            done(&[RefreshEvent::Changed, RefreshEvent::Changed, RefreshEvent::Changed, SHOWN]),
            [Some(RefreshAction::Fetch), None, None, rest]
        );
    }

    #[test]
    fn what_came_meanwhile_is_asked_for_after_the_rest() {
        let after = |events: &[RefreshEvent]| *done(events).last().unwrap();
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
    fn a_rest_has_an_end() {
        let slow = RefreshEvent::Rendered { after: Duration::from_mins(1), pace: Duration::ZERO };
        assert_eq!(done(&[RefreshEvent::Changed, slow]).pop(), Some(Some(RefreshAction::Wait(MAX_REST))));
    }

    #[test]
    fn news_within_the_pace_wait_for_its_end() {
        let paced = RefreshEvent::Rendered { after: Duration::from_millis(20), pace: Duration::from_secs(5) };
        let rest = Some(RefreshAction::Wait(Duration::from_secs(5)));
        let events =
            [RefreshEvent::Changed, paced, RefreshEvent::Changed, RefreshEvent::Changed, RefreshEvent::TimerElapsed];
        assert_eq!(done(&events), [Some(RefreshAction::Fetch), rest, None, None, Some(RefreshAction::Fetch)]);
    }

    #[test]
    fn what_was_not_answered_is_asked_for_again_after_growing_pauses() {
        let failed = RefreshEvent::Failed { again: true };
        let mut events = vec![RefreshEvent::Changed];
        events.extend([failed, RefreshEvent::Changed, RefreshEvent::TimerElapsed].repeat(7));
        let pauses: Vec<u64> = done(&events)
            .into_iter()
            .filter_map(|action| match action? {
                RefreshAction::Wait(pause) => Some(pause.as_secs()),
                RefreshAction::Fetch => None,
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(retry_delay(u32::MAX), Duration::from_secs(30));
        // An answer ends it.
        events.extend([SHOWN, RefreshEvent::TimerElapsed, RefreshEvent::Changed, failed]);
        assert_eq!(done(&events).pop(), Some(Some(RefreshAction::Wait(Duration::from_secs(1)))));
    }

    #[test]
    fn a_server_that_is_back_is_asked_at_once() {
        let failed = [RefreshEvent::Changed, RefreshEvent::Failed { again: true }, RefreshEvent::Reconnected];
        assert_eq!(done(&failed).pop(), Some(Some(RefreshAction::Fetch)));
        let refused = done(&[
            RefreshEvent::Changed,
            RefreshEvent::Failed { again: false },
            RefreshEvent::Changed,
            RefreshEvent::Reconnected,
        ]);
        assert_eq!(refused, [Some(RefreshAction::Fetch), None, None, Some(RefreshAction::Fetch)]);
        assert_eq!(
            done(&[RefreshEvent::Reconnected, RefreshEvent::Changed, RefreshEvent::Reconnected]),
            [None, Some(RefreshAction::Fetch), None]
        );
    }

    #[test]
    fn whatever_happens_the_last_news_are_asked_for() {
        // Every order of six events: the last news is followed by an asking, once rests and answers have come.
        let kinds = [RefreshEvent::Changed, SHOWN, RefreshEvent::TimerElapsed, RefreshEvent::Failed { again: true }];
        for number in 0..4_usize.pow(6) {
            let events: Vec<RefreshEvent> = (0..6).map(|place| kinds[number / 4_usize.pow(place) % 4]).collect();
            let ending = [SHOWN, RefreshEvent::TimerElapsed, SHOWN, RefreshEvent::TimerElapsed];
            let all: Vec<RefreshEvent> = events.iter().copied().chain(ending).collect();
            let actions = done(&all);
            let Some(last) = all.iter().rposition(|event| *event == RefreshEvent::Changed) else { continue };
            assert!(actions[last..].contains(&Some(RefreshAction::Fetch)), "{events:?}");
        }
    }
}
