//! The words of the page of a log.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    pub(crate) Logs {
        title: Phrase,
        open: Text,
        attempts: Text,
        search: Text,
        search_hint: Text,
        regex: Text,
        case: Text,
        previous: Text,
        next: Text,
        matches: Count,
        rank: Phrase,
        so_far: Phrase,
        none: Text,
        errors: Text,
        errors_hint: Text,
        line: Text,
        go: Text,
        first: Text,
        earlier: Text,
        later: Text,
        last: Text,
        shown: Phrase,
        newer: Count,
        missing: Text,
        copy_link: Text,
        copy_lines: Text,
        omitted: Phrase,
        gap: Phrase,
    }
}
