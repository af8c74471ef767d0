//! The end of a log on the page of its job: the last part comes with the page, and new output is appended by offset.

use leptos::html::Div;
use leptos::prelude::*;

use super::icon::Icon;
use super::log_line::StyledText;
use crate::domain::ids::JobId;
use crate::protocol::jobs::LogChunk;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::job_feed::use_job_feed;
use crate::ui::logs::{LineContent, TailBuffer, TailLine};
use crate::ui::schedule::on_next_frame;

/// The maximum size of the part of a log that comes with the page, in bytes.
pub(crate) const TAIL_BYTES: u32 = 64 * 1024;

/// A panel with the end of a log, which grows; `first` is the part that came with the page. Hidden while the log is
/// empty.
#[component]
pub(crate) fn LogTailPanel(job: JobId, first: LogChunk) -> impl IntoView {
    let words = &t().log;
    let attempt = first.attempt;
    let lines = RwSignal::new({
        let mut lines = TailBuffer::default();
        lines.push(&first);
        lines
    });
    use_job_feed().log.set_value(Some((attempt, lines)));

    let follow = RwSignal::new(true);
    let wrap = RwSignal::new(true);
    let viewport = NodeRef::<Div>::new();
    Effect::new(move |_| {
        lines.track();
        if let (true, Some(viewport)) = (follow.get(), viewport.get()) {
            // After the new lines are in the document.
            on_next_frame(follow, move || viewport.set_scroll_top(viewport.scroll_height()));
        }
    });
    // Scrolling up stops following, and scrolling back to the end resumes it.
    let on_scroll = move |_| {
        if let Some(viewport) = viewport.get_untracked() {
            let distance_to_end = viewport.scroll_height() - viewport.scroll_top() - viewport.client_height();
            let at_end = distance_to_end < 24;
            if follow.get_untracked() != at_end {
                follow.set(at_end);
            }
        }
    };
    let is_empty = Memo::new(move |_| lines.with(|lines| lines.iter().next().is_none()));
    let is_truncated = Memo::new(move |_| lines.with(TailBuffer::is_truncated));
    let full_log_url = format!("/jobs/{job}/log?attempt={attempt}");
    let raw_log_url = format!("/api/queue/{job}/logs?attempt={attempt}&raw=1");
    view! {
        <section class="panel" aria-labelledby="log" hidden=move || is_empty.get()>
            <h2 id="log" class="panel-head flex-wrap">
                {words.title}
                <span class="panel-note">{words.attempt.of(attempt.0)}</span>
                <span class="ml-auto flex flex-wrap items-center gap-1">
                    <ToggleButton label=words.follow on=follow/>
                    <ToggleButton label=words.wrap on=wrap/>
                    <a class="btn btn-xs btn-ghost" href=full_log_url><Icon glyph=Glyph::Search/>{t().logs.open}</a>
                    <a class="btn btn-xs btn-ghost" rel="external" href=raw_log_url><Icon glyph=Glyph::Download/>{words.raw}</a>
                </span>
            </h2>
            <div
                class="log is-tail"
                class:is-wrapped=wrap
                node_ref=viewport
                on:scroll=on_scroll
                tabindex="0"
                role="log"
                aria-live="off"
                aria-label=words.region
            >
                <div>
                    {move || is_truncated.get().then(|| view! { <p class="log-note">{words.earlier}</p> })}
                    <For
                        each=move || lines.with(|lines| lines.iter().cloned().collect::<Vec<_>>())
                        key=|line| (line.number, line.revision)
                        children=|line| view! { <TailRow line=line/> }
                    />
                </div>
            </div>
        </section>
    }
    .into_erased()
}

#[component]
fn ToggleButton(label: &'static str, on: RwSignal<bool>) -> impl IntoView {
    view! {
        <button
            type="button"
            class="js-only toggle-button"
            aria-pressed=move || if on.get() { "true" } else { "false" }
            on:click=move |_| on.update(|on| *on = !*on)
        >
            {label}
        </button>
    }
    .into_erased()
}

#[component]
fn TailRow(line: TailLine) -> impl IntoView {
    match line.content {
        LineContent::Gap(bytes) => {
            view! { <p class="log-gap">{t().log.gap.of(t().format_bytes(bytes))}</p> }.into_erased()
        }
        LineContent::Text(spans) => view! { <p class="log-line"><StyledText spans=spans/></p> }.into_erased(),
    }
}
