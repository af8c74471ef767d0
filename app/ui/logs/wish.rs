//! What the address of a log asks for.

use leptos_router::params::ParamsMap;

use crate::domain::ids::{Attempt, JobId};
use crate::protocol::logs::{LogLinesQuery, LogSearchQuery};
use crate::ui::format::query_string;

/// So many lines come with the page.
pub(crate) const WINDOW: u32 = 200;

/// See the module. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Wish {
    /// Which attempt; the newest if there is none.
    pub attempt: Option<u32>,
    /// The chosen lines: the first and the last.
    pub lines: Option<(u64, u64)>,
    /// Where the page begins, if no line is chosen.
    pub from: Option<u64>,
    /// What is looked for.
    pub find: Find,
    /// Whether long lines are wrapped.
    pub wrap: bool,
}

/// What is looked for in a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Find {
    /// The text; nothing is looked for if it is empty.
    pub q: String,
    /// Whether it is a regular expression.
    pub regex: bool,
    /// Whether capital letters are others.
    pub case: bool,
}

impl Find {
    /// Lines that probably say what went wrong.
    pub fn errors() -> Self {
        Self {
            q: r"\b(\w*error|\w*exception|traceback|fatal|critical|out of memory)\b".to_owned(),
            regex: true,
            case: false,
        }
    }
}

impl Wish {
    pub fn of(params: &ParamsMap) -> Self {
        let is = |name: &str| params.get(name).is_some_and(|value| value == "true");
        let number =
            |name: &str| params.get(name).and_then(|text| text.parse::<u64>().ok()).filter(|number| *number > 0);
        Self {
            attempt: number("attempt").and_then(|attempt| attempt.try_into().ok()),
            lines: params.get("line").and_then(|text| lines(&text)),
            from: number("from"),
            find: Find { q: params.get("q").unwrap_or_default(), regex: is("regex"), case: is("case") },
            wrap: is("wrap"),
        }
    }

    /// Its address.
    pub fn href(&self, job: &JobId) -> String {
        let yes = |is: bool| is.then(|| "true".to_owned());
        let lines =
            self.lines.map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
        let query = query_string(&[
            ("attempt", self.attempt.map(|attempt| attempt.to_string())),
            ("line", lines),
            ("from", self.from.map(|from| from.to_string())),
            ("q", Some(self.find.q.clone())),
            ("regex", yes(self.find.regex)),
            ("case", yes(self.find.case)),
            ("wrap", yes(self.wrap)),
        ]);
        format!("/jobs/{job}/log{query}")
    }

    /// The same, with this line chosen.
    pub fn at(&self, line: u64) -> Self {
        Self { lines: Some((line, line)), from: None, ..self.clone() }
    }

    /// The same, with all lines from the chosen one to this one.
    pub fn up_to(&self, line: u64) -> Self {
        let (first, _) = self.lines.unwrap_or((line, line));
        Self { lines: Some((first.min(line), first.max(line))), from: None, ..self.clone() }
    }

    /// The lines around what is asked for; the last ones, if nothing is.
    pub fn window(&self, attempt: Attempt) -> LogLinesQuery {
        let around = self.lines.map(|(first, _)| first.saturating_sub(u64::from(WINDOW) / 2).max(1));
        self.some(attempt, around.or(self.from), WINDOW)
    }

    /// Some lines.
    pub fn some(&self, attempt: Attempt, from: Option<u64>, limit: u32) -> LogLinesQuery {
        let Find { q, regex, case } = self.find.clone();
        LogLinesQuery {
            attempt: Some(attempt.0),
            from,
            limit: Some(limit),
            q: Some(q).filter(|q| !q.is_empty()),
            regex,
            case,
        }
    }

    /// A search for what is looked for, in all lines.
    pub fn search(&self, attempt: Attempt) -> LogSearchQuery {
        let Find { q, regex, case } = self.find.clone();
        LogSearchQuery { attempt: Some(attempt.0), q, regex, case, ..LogSearchQuery::default() }
    }
}

/// `12`, or `12-40`.
fn lines(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first > 0 && last > 0).then(|| (std::cmp::min(first, last), std::cmp::max(first, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[(&'static str, &str)]) -> Wish {
        let mut params = ParamsMap::new();
        for (key, value) in query {
            params.insert(*key, (*value).to_owned());
        }
        Wish::of(&params)
    }

    #[test]
    fn addresses_and_wishes_are_inverse() {
        let job = JobId::parse("j_01k9zv3m8e6q2c4r7t5w0x1y2z").expect("an id");
        let wish = read(&[("attempt", "2"), ("line", "12-40"), ("q", "a&b"), ("regex", "true"), ("wrap", "true")]);
        assert_eq!(wish.lines, Some((12, 40)));
        assert_eq!(wish.href(&job), format!("/jobs/{job}/log?attempt=2&line=12-40&q=a%26b&regex=true&wrap=true"));
        assert_eq!(wish.at(7).href(&job), format!("/jobs/{job}/log?attempt=2&line=7&q=a%26b&regex=true&wrap=true"));
        assert_eq!(wish.up_to(7).lines, Some((7, 12)));
        assert_eq!(read(&[]).href(&job), format!("/jobs/{job}/log"));
    }

    #[test]
    fn nonsense_asks_for_nothing() {
        for line in ["", "x", "0", "-3", "4-", "9-0", "99999999999999999999"] {
            assert_eq!(read(&[("line", line), ("attempt", line), ("from", line)]), Wish::default(), "{line}");
        }
        assert_eq!(read(&[("line", "9-4")]).lines, Some((4, 9)));
    }

    #[test]
    fn the_window_is_around_what_is_asked_for() {
        let from = |wish: Wish| wish.window(Attempt(1)).from;
        assert_eq!(from(Wish::default()), None);
        assert_eq!(from(Wish::default().at(1_000)), Some(900));
        assert_eq!(from(Wish::default().at(5)), Some(1));
        assert_eq!(from(Wish { from: Some(7), ..Wish::default() }), Some(7));
    }
}
