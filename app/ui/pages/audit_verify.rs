//! Verifies the integrity of the audit log.

use leptos::prelude::*;

use crate::domain::text::escape;
use crate::protocol::audit::{AuditFault, AuditVerification};
use crate::ui::backend::use_page_backend;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

#[component]
pub(crate) fn AuditVerifyPage() -> impl IntoView {
    let words = &t().server_pages().audit;
    let page_backend = use_page_backend();
    let verdict = Resource::new(|| (), move |()| page_backend.verify_audit());
    let shown = move || {
        Suspend::new(async move {
            match verdict.await {
                Ok(verdict) => view! { <VerifyResult verdict=verdict/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.verify_title above=("/admin/audit", t().nav.audit) intro=words.verify_intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn VerifyResult(verdict: AuditVerification) -> impl IntoView {
    let words = &t().server_pages().audit;
    let (class, glyph, message) = if verdict.intact {
        ("status status-good", Glyph::CheckCircle, words.intact)
    } else {
        ("status status-bad", Glyph::CrossCircle, words.broken)
    };
    let foreign = (verdict.checkpoints_of_other_keys > 0).then(|| words.foreign.of(verdict.checkpoints_of_other_keys));
    let no_key = (!verdict.key_found).then_some(words.no_key);
    let lines =
        verdict.broken_checkpoint_lines.iter().map(|line| view! { <p class="text-bad">{words.bad_line.of(line)}</p> });
    let lines = lines.collect_view();
    let more =
        (verdict.more_faults > 0).then(|| view! { <p class="panel-empty">{words.more.of(verdict.more_faults)}</p> });
    let faults = (!verdict.faults.is_empty()).then(|| {
        view! {
            <section class="panel" aria-labelledby="faults">
                <h2 id="faults" class="panel-head">{words.fault}</h2>
                <table class="data">
                    <caption class="sr-only">{words.fault}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{words.which}</th>
                            <th scope="col">{words.fault}</th>
                            <th scope="col">{words.chain}</th>
                        </tr>
                    </thead>
                    <tbody>{verdict.faults.into_iter().map(|fault| view! { <FaultRow fault=fault/> }).collect_view()}</tbody>
                </table>
                {more}
            </section>
        }
    });
    view! {
        <div class="space-y-6">
            <section class="panel verdict" role="status">
                <span class=class><Icon glyph=glyph/><span>{message}</span></span>
                <span>{words.entries.of(verdict.entries)}</span>
                <span>{words.chains.of(verdict.chains)}</span>
                <span>{words.signed.of(verdict.checkpoints_signed)}</span>
                {foreign.map(|foreign| view! { <span class="text-muted">{foreign}</span> })}
                {no_key.map(|no_key| view! { <span class="text-muted">{no_key}</span> })}
                {lines}
            </section>
            {faults}
        </div>
    }
    .into_erased()
}

#[component]
fn FaultRow(fault: AuditFault) -> impl IntoView {
    let language = t();
    let words = &language.server_pages().audit;
    let number = |seq: i64| language.format_integer(seq.unsigned_abs());
    let seq_range = match (fault.from, fault.to) {
        (Some(from), Some(to)) if from == to => number(from),
        (Some(from), Some(to)) => format!("{}–{}", number(from), number(to)),
        _ => words.whole_chain.to_owned(),
    };
    let sentence = words.faults.of(&fault.fault);
    view! {
        <tr>
            <th scope="row" class="tabular-nums whitespace-nowrap">{seq_range}</th>
            <td>{sentence}<code class="row-sub">{fault.fault}</code></td>
            <td><code class="wrap-anywhere">{escape(&fault.chain).into_owned()}</code></td>
        </tr>
    }
    .into_erased()
}
