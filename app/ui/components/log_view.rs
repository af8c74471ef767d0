//! The trainer's output: the tail with the page, then what is appended, by offset.

use leptos::html::Div;
use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use super::log_line::Inked;
use crate::domain::ids::{Attempt, JobId};
use crate::protocol::queue::LogChunk;
use crate::protocol::topic::Topic;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::{Asked, on_news};
use crate::ui::logs::{Content, Line, Lines};
use crate::ui::port::SharedPort;

/// How much of a log comes with the page, and at most in one piece after it, in bytes.
pub(crate) const TAIL_BYTES: u32 = 64 * 1024;

/// A log that grows, from its first piece on.
#[component]
pub(crate) fn LogView(job: JobId, first: LogChunk, empty: Signal<&'static str>) -> impl IntoView {
    let words = &t().log;
    let attempt = first.attempt;
    let lines = RwSignal::new({
        let mut lines = Lines::default();
        lines.push(&first);
        lines
    });
    append_news(job.clone(), attempt, lines);

    let follow = RwSignal::new(true);
    let wrap = RwSignal::new(true);
    let viewport = NodeRef::<Div>::new();
    Effect::new(move |_| {
        lines.track();
        if let (true, Some(viewport)) = (follow.get(), viewport.get()) {
            // After the new lines are in the document.
            request_animation_frame(move || viewport.set_scroll_top(viewport.scroll_height()));
        }
    });
    // Whoever scrolls up wants to read, and whoever comes back to the end wants to follow.
    let on_scroll = move |_| {
        if let Some(viewport) = viewport.get_untracked() {
            let below = viewport.scroll_height() - viewport.scroll_top() - viewport.client_height();
            let at_end = below < 24;
            if follow.get_untracked() != at_end {
                follow.set(at_end);
            }
        }
    };
    let is_empty = Memo::new(move |_| lines.with(|lines| lines.iter().next().is_none()));
    let is_cut = Memo::new(move |_| lines.with(Lines::is_cut));
    let whole = format!("/jobs/{job}/log?attempt={attempt}");
    let raw = format!("/api/queue/{job}/logs?attempt={attempt}&raw=1");
    view! {
        <section class="panel" aria-labelledby="log">
            <h2 id="log" class="panel-head flex-wrap">
                {words.title}
                <span class="panel-note">{words.attempt.of(attempt.0)}</span>
                <span class="ml-auto flex flex-wrap items-center gap-1">
                    <Toggle label=words.follow on=follow/>
                    <Toggle label=words.wrap on=wrap/>
                    <a class="btn btn-xs btn-ghost" href=whole><Icon glyph=Glyph::Search/>{t().logs.open}</a>
                    <a class="btn btn-xs btn-ghost" rel="external" href=raw><Icon glyph=Glyph::Download/>{words.raw}</a>
                </span>
            </h2>
            <div
                class="log"
                class:is-wrapped=wrap
                node_ref=viewport
                on:scroll=on_scroll
                tabindex="0"
                role="log"
                aria-live="off"
                aria-label=words.region
            >
                <div>
                    {move || is_cut.get().then(|| view! { <p class="log-note">{words.earlier}</p> })}
                    {move || is_empty.get().then(|| view! { <p class="log-note">{empty}</p> })}
                    <For
                        each=move || lines.with(|lines| lines.iter().cloned().collect::<Vec<_>>())
                        key=|line| (line.number, line.revision)
                        children=|line| view! { <LogLine line=line/> }
                    />
                </div>
            </div>
        </section>
    }
    .erased()
}

/// Asks for what comes after the last known byte, whenever the server says that there is more.
fn append_news(job: JobId, attempt: Attempt, lines: RwSignal<Lines>) {
    let Some(port) = use_context::<SharedPort>() else { return };
    let ask = {
        let job = job.clone();
        move || -> Asked {
            let (port, job) = (port.clone(), job.clone());
            Box::pin(async move {
                let mut more = true;
                while more {
                    let Some(offset) = lines.try_with_untracked(Lines::next_offset) else { break };
                    let chunk = port.job_log(job.clone(), attempt, offset, TAIL_BYTES).await?;
                    more = chunk.next_offset < chunk.size && Some(chunk.next_offset) != offset;
                    lines.try_update(|lines| lines.push(&chunk));
                }
                Ok(())
            })
        }
    };
    on_news(&[Topic::Log(job)], Box::new(ask));
}

#[component]
fn Toggle(label: &'static str, on: RwSignal<bool>) -> impl IntoView {
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
    .erased()
}

#[component]
fn LogLine(line: Line) -> impl IntoView {
    match line.content {
        Content::Gap(bytes) => view! { <p class="log-gap">{t().log.gap.of(t().bytes(bytes))}</p> }.erased(),
        Content::Text(spans) => view! { <p class="log-line"><Inked spans=spans/></p> }.erased(),
    }
}
