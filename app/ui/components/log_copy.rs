//! Buttons that copy the selected lines of a log, or a link to them.

use std::fmt::Write;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::icon::Icon;
use super::log_reader::LogReader;
use crate::domain::log_text::plain_text;
use crate::protocol::problem::Problem;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::logs::view_state::LogViewState;
use crate::ui::notifications::use_notifications;
use crate::ui::schedule::after;

/// How long a button confirms that it has copied.
const COPIED_NOTICE: Duration = Duration::from_secs(2);

/// Buttons that copy a link to the selected lines, and their text; rendered while lines are selected.
#[component]
pub(crate) fn CopySelected(reader: LogReader) -> impl IntoView {
    let words = t();
    let notifications = use_notifications();
    let copied = RwSignal::new(None::<usize>);
    let copy = move |button_index: usize, text: &str| {
        if browser::copy_to_clipboard(text) {
            copied.set(Some(button_index));
            after(COPIED_NOTICE, copied, move || copied.set(None));
        }
    };
    let link = move |_| {
        let href =
            reader.view_state.with_untracked(|view_state| reader.log.with_value(|log| view_state.href(&log.job)));
        copy(0, &format!("{}{href}", browser::origin()));
    };
    let lines = move |_| {
        spawn_local(async move {
            match selected_text(reader).await {
                Ok(text) => copy(1, &text),
                Err(problem) => notifications.error(problem),
            }
        });
    };
    let button = move |button_index: usize, label: &'static str| {
        let is_copied = move || copied.get() == Some(button_index);
        let glyph = move || if is_copied() { Glyph::Check } else { Glyph::Copy };
        let text = move || if is_copied() { words.common.copied } else { label };
        view! { {move || view! { <Icon glyph=glyph()/> }} <span aria-live="polite">{text}</span> }
    };
    let has_selection = Memo::new(move |_| reader.view_state.with(|view_state| view_state.selected_lines.is_some()));
    (move || {
        has_selection.get().then(|| {
            view! {
                <button type="button" class="js-only btn btn-xs btn-ghost" on:click=link>{button(0, words.logs.copy_link)}</button>
                <button type="button" class="js-only btn btn-xs btn-ghost" on:click=lines>{button(1, words.logs.copy_lines)}</button>
            }
        })
    })
    .into_erased()
}

/// Fetches the text of the selected lines; the page may hold only some of them.
async fn selected_text(reader: LogReader) -> Result<String, Problem> {
    let mut text = String::new();
    let Some((mut from, last)) = reader.view_state.with_untracked(|view_state| view_state.selected_lines) else {
        return Ok(text);
    };
    let log = reader.log.get_value();
    while from <= last {
        let limit = u32::try_from(last - from + 1).unwrap_or(u32::MAX);
        let page = log
            .backend
            .job_log_lines(log.job.clone(), LogViewState::default().lines_query(log.attempt, Some(from), limit))
            .await?;
        from = page.from + page.lines.len() as u64;
        for line in &page.lines {
            _ = writeln!(text, "{}", plain_text(&line.text));
        }
        if page.lines.is_empty() {
            break;
        }
    }
    Ok(text)
}
