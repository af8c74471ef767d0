//! English: the page of a log.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::logs::Logs;

pub(super) const LOGS: Logs = Logs {
    title: Phrase("Log of {0}"),
    open: "Open the log",
    attempts: "Attempts",
    search: "Search the log",
    search_hint: "Search",
    regex: "Regular expression",
    case: "Match case",
    previous: "Previous match",
    next: "Next match",
    matches: count("1 line has it", "{0} lines have it"),
    rank: Phrase("{0} of {1}"),
    so_far: Phrase("{0} so far …"),
    none: "No line has it",
    errors: "Errors",
    errors_hint: "Find lines that say what went wrong",
    line: "Go to line",
    go: "Go",
    first: "First lines",
    earlier: "Earlier",
    later: "Later",
    last: "Last lines",
    shown: Phrase("Lines {0} to {1} of {2}"),
    newer: count("1 new line", "{0} new lines"),
    missing: "Some lines could not be fetched. The page keeps trying.",
    copy_link: "Copy link",
    copy_lines: "Copy lines",
    omitted: Phrase("{0} more of this line are in the full log"),
    gap: Phrase("{0} of the log are missing: the worker could not send them, and had no room to keep them"),
};
