//! The lines of one rank in a log of several, part by part.

use leptos::prelude::*;

use super::log_line::LogLineText;
use crate::domain::ids::JobId;
use crate::protocol::logs::LogLines;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::logs::view_state::LogViewState;

/// Selects a rank; nothing if no line has the prefix of one.
#[component]
pub(crate) fn RankPicker(job: JobId, ranks: Memo<Vec<u32>>, view_state: Memo<LogViewState>) -> impl IntoView {
    let words = t();
    let LogViewState { attempt, wrap, times, rank: selected, .. } = view_state.get_untracked();
    let option = move |rank: u32| {
        view! { <option value=rank.to_string() selected=Some(rank) == selected>{words.log.rank_number.of(rank)}</option> }
    };
    (move || {
        let mut ranks = ranks.get();
        // The selected one may be further inside the log.
        ranks.extend(selected.filter(|rank| !ranks.contains(rank)));
        ranks.sort_unstable();
        (!ranks.is_empty()).then(|| {
            view! {
                <form class="log-jump" method="get" action=format!("/jobs/{job}/log")>
                    {attempt.map(|attempt| view! { <input type="hidden" name="attempt" value=attempt.to_string()/> })}
                    {wrap.then(|| view! { <input type="hidden" name="wrap" value="true"/> })}
                    {times.then(|| view! { <input type="hidden" name="times" value="true"/> })}
                    <label class="sr-only" for="rank">{words.log.rank}</label>
                    <select id="rank" name="rank" class="select select-xs" on:change=move |event| browser::submit_enclosing_form(&event)>
                        <option value="">{words.log.all_ranks}</option>
                        {ranks.into_iter().map(option).collect_view()}
                    </select>
                    <button class="no-js-only btn btn-xs btn-ghost">{words.logs.go}</button>
                </form>
            }
        })
    })
    .into_erased()
}

/// The lines of a rank. A line's number leads to it among those of all ranks.
#[component]
pub(crate) fn RankLog(
    job: JobId,
    lines: LogLines,
    ranks: Memo<Vec<u32>>,
    view_state: Memo<LogViewState>,
) -> impl IntoView {
    let words = t();
    let LogLines { from, lines, earlier, later, .. } = lines;
    let current = view_state.get_untracked();
    let rank = current.rank.unwrap_or_default();
    let href = {
        let job = job.clone();
        move |state: LogViewState| state.href(&job)
    };
    let all_ranks = current.with_rank(None);
    let rows = (from..).zip(lines).map(|(number, line)| {
        let number = line.number.unwrap_or(number);
        view! {
            <div class="log-row" id=format!("L{number}")>
                <a class="log-number" href=href(all_ranks.with_line(number))>{number}</a>
                <LogLineText line=line.into()/>
            </div>
        }
    });
    let rows = rows.collect::<Vec<_>>();
    let body = if rows.is_empty() {
        view! { <p class="panel-empty">{words.log.no_lines_of_rank.of(rank)}</p> }.into_erased()
    } else {
        view! {
            <div class="log is-excerpt is-rank" class:is-wrapped=current.wrap tabindex="0" role="group" aria-label=words.log.region dir="ltr">
                {rows}
            </div>
        }
        .into_erased()
    };
    let part = |label: &'static str, first_line: Option<u64>, before: Option<u64>| {
        view! { <a class="btn btn-sm" href=href(LogViewState { first_line, before, ..current.with_rank(current.rank) })>{label}</a> }
    };
    let before = earlier
        .map(|line| view! { {part(words.logs.first, Some(1), None)} {part(words.logs.earlier, None, Some(line))} });
    let after =
        later.map(|line| view! { {part(words.logs.later, Some(line), None)} {part(words.logs.last, None, None)} });
    let wrap = href(LogViewState { wrap: !current.wrap, ..current.clone() });
    let times = href(LogViewState { times: !current.times, ..current.clone() });
    view! {
        <section class="panel log-panel" aria-label=words.log.title>
            <div class="log-bar">
                <RankPicker job=job ranks=ranks view_state=view_state/>
                <div class="log-tools">
                    <a class="toggle-button" href=times title=words.log.times_hint aria-current=current.times.then_some("true") data-noscroll="">{words.log.times}</a>
                    <a class="toggle-button" href=wrap aria-current=current.wrap.then_some("true") data-noscroll="">{words.log.wrap}</a>
                </div>
            </div>
            {body}
        </section>
        <div class="pager">{before} {after}</div>
    }
    .into_erased()
}
