//! When a page that shows something asks for it again: at once, never twice at the same time, and under a flood of changes so
//! seldom that the page has three quarters of its time for its reader.

use std::time::Duration;

/// Rests so many times as long as it took to ask and to show.
const REST: u32 = 3;
/// Whatever that took, it is not older than this and the asking itself.
const LONGEST: Duration = Duration::from_secs(5);

/// Where the asking stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Asking {
    /// What is shown is the newest that is known of.
    #[default]
    Idle,
    /// An answer is on its way; whether there was news since.
    Asked { news: bool },
    /// It was shown a moment ago; whether there was news since.
    Resting { news: bool },
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// There is news.
    News,
    /// The answer is shown, or there was none; so long after it was asked for.
    Shown { after: Duration },
    /// The rest is over.
    Rested,
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
                (Self::Asked { news: false }, Some(Action::Ask))
            }
            (Self::Asked { .. }, Event::News) => (Self::Asked { news: true }, None),
            (Self::Resting { .. }, Event::News) => (Self::Resting { news: true }, None),
            (Self::Asked { news }, Event::Shown { after }) => {
                (Self::Resting { news }, Some(Action::Rest(LONGEST.min(after * REST))))
            }
            (Self::Resting { news: false } | Self::Idle, Event::Rested) => (Self::Idle, None),
            // Of an asking that is over.
            (state, Event::Shown { .. } | Event::Rested) => (state, None),
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
    fn whatever_happens_the_last_news_are_asked_for() {
        // Every order of six events: the last news is followed by an asking, once rests and answers have come.
        let kinds = [Event::News, SHOWN, Event::Rested];
        for number in 0..3_usize.pow(6) {
            let events: Vec<Event> = (0..6).map(|place| kinds[number / 3_usize.pow(place) % 3]).collect();
            let ending = [SHOWN, Event::Rested, SHOWN, Event::Rested];
            let all: Vec<Event> = events.iter().copied().chain(ending).collect();
            let actions = done(&all);
            let Some(last) = all.iter().rposition(|event| *event == Event::News) else { continue };
            assert!(actions[last..].contains(&Some(Action::Ask)), "{events:?}");
        }
    }
}
