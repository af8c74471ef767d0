//! When a page that shows something asks for it again: at once, never twice at the same time, and under a flood of changes so
//! seldom that the page has three quarters of its time for its reader. Where there is no answer it is asked again, after
//! pauses that grow.

use std::time::Duration;

/// Rests so many times as long as it took to ask and to show.
const REST: u32 = 3;
/// Whatever that took, it is not older than this and the asking itself.
const LONGEST: Duration = Duration::from_secs(5);
/// No pause after a failure is longer, in seconds.
const LONGEST_PAUSE: u64 = 30;

/// How long to wait before the next attempt, after so many that failed: 1 s, 2 s, 4 s and so on.
pub(crate) fn pause(failed: u32) -> Duration {
    Duration::from_secs(LONGEST_PAUSE.min(1 << failed.saturating_sub(1).min(8)))
}

/// Where the asking stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Asking {
    /// What is shown is the newest that is known of.
    #[default]
    Idle,
    /// An answer is on its way; whether there was news since, and how often in a row there was none.
    Asked { news: bool, failed: u32 },
    /// It was shown a moment ago; whether there was news since.
    Resting { news: bool },
    /// There was no answer, so often in a row.
    Waiting { failed: u32 },
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// There is news.
    News,
    /// The answer is shown; so long after it was asked for.
    Shown { after: Duration },
    /// There was no answer; whether it may be better in a while.
    Failed { again: bool },
    /// The rest is over, or the pause.
    Rested,
    /// The server is there again.
    Back,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Ask.
    Ask,
    /// Say [`Event::Rested`] after so long.
    Rest(Duration),
}

impl Asking {
    /// The next state, and what is to be done.
    pub fn on(self, event: Event) -> (Self, Option<Action>) {
        match (self, event) {
            (Self::Idle, Event::News) | (Self::Resting { news: true }, Event::Rested) => {
                (Self::Asked { news: false, failed: 0 }, Some(Action::Ask))
            }
            (Self::Waiting { failed }, Event::Rested | Event::Back) => {
                (Self::Asked { news: false, failed }, Some(Action::Ask))
            }
            (Self::Asked { failed, .. }, Event::News) => (Self::Asked { news: true, failed }, None),
            (Self::Resting { .. }, Event::News) => (Self::Resting { news: true }, None),
            (Self::Asked { news, .. }, Event::Shown { after }) => {
                (Self::Resting { news }, Some(Action::Rest(LONGEST.min(after * REST))))
            }
            (Self::Asked { failed, .. }, Event::Failed { again }) => {
                let failed = failed.saturating_add(1);
                (Self::Waiting { failed }, again.then(|| Action::Rest(pause(failed))))
            }
            (Self::Resting { news: false }, Event::Rested) => (Self::Idle, None),
            // News hasten no pause; and of an asking that is over nothing comes any more.
            (state, _) => (state, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: Event = Event::Shown { after: Duration::from_millis(20) };

    /// What is done about these events, one after the other.
    fn done(events: &[Event]) -> Vec<Option<Action>> {
        let step = |state: &mut Asking, event: &Event| {
            let (next, action) = state.on(*event);
            *state = next;
            Some(action)
        };
        events.iter().scan(Asking::Idle, step).collect()
    }

    #[test]
    fn news_are_asked_for_at_once_and_only_once_at_a_time() {
        let rest = Some(Action::Rest(Duration::from_millis(60)));
        assert_eq!(done(&[Event::News, Event::News, Event::News, SHOWN]), [Some(Action::Ask), None, None, rest]);
    }

    #[test]
    fn what_came_meanwhile_is_asked_for_after_the_rest() {
        let after = |events: &[Event]| *done(events).last().unwrap();
        assert_eq!(after(&[Event::News, SHOWN, Event::Rested]), None);
        assert_eq!(after(&[Event::News, Event::News, SHOWN, Event::Rested]), Some(Action::Ask));
        assert_eq!(after(&[Event::News, SHOWN, Event::News, Event::Rested]), Some(Action::Ask));
        assert_eq!(after(&[Event::News, SHOWN, Event::Rested, Event::News]), Some(Action::Ask));
    }

    #[test]
    fn a_rest_has_an_end() {
        let slow = Event::Shown { after: Duration::from_mins(1) };
        assert_eq!(done(&[Event::News, slow]).pop(), Some(Some(Action::Rest(LONGEST))));
    }

    #[test]
    fn what_was_not_answered_is_asked_for_again_after_growing_pauses() {
        let failed = Event::Failed { again: true };
        let mut events = vec![Event::News];
        events.extend([failed, Event::News, Event::Rested].repeat(7));
        let pauses: Vec<u64> = done(&events)
            .into_iter()
            .filter_map(|action| match action? {
                Action::Rest(pause) => Some(pause.as_secs()),
                Action::Ask => None,
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause(u32::MAX), Duration::from_secs(30));
        // An answer ends it.
        events.extend([SHOWN, Event::Rested, Event::News, failed]);
        assert_eq!(done(&events).pop(), Some(Some(Action::Rest(Duration::from_secs(1)))));
    }

    #[test]
    fn a_server_that_is_back_is_asked_at_once() {
        let failed = [Event::News, Event::Failed { again: true }, Event::Back];
        assert_eq!(done(&failed).pop(), Some(Some(Action::Ask)));
        let refused = done(&[Event::News, Event::Failed { again: false }, Event::News, Event::Back]);
        assert_eq!(refused, [Some(Action::Ask), None, None, Some(Action::Ask)]);
        assert_eq!(done(&[Event::Back, Event::News, Event::Back]), [None, Some(Action::Ask), None]);
    }

    #[test]
    fn whatever_happens_the_last_news_are_asked_for() {
        // Every order of six events: the last news is followed by an asking, once rests and answers have come.
        let kinds = [Event::News, SHOWN, Event::Rested, Event::Failed { again: true }];
        for number in 0..4_usize.pow(6) {
            let events: Vec<Event> = (0..6).map(|place| kinds[number / 4_usize.pow(place) % 4]).collect();
            let ending = [SHOWN, Event::Rested, SHOWN, Event::Rested];
            let all: Vec<Event> = events.iter().copied().chain(ending).collect();
            let actions = done(&all);
            let Some(last) = all.iter().rposition(|event| *event == Event::News) else { continue };
            assert!(actions[last..].contains(&Some(Action::Ask)), "{events:?}");
        }
    }
}
