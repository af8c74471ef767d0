//! Security notices for the user: unfamiliar sign-ins, and changes of their credentials.

use leptos::prelude::*;

use crate::protocol::access::notices::NoticeView;
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The notices section of the account page; empty without notices.
#[component]
pub(super) fn NoticeList(notices: Vec<NoticeView>) -> impl IntoView {
    let words = &t().server_pages().notices;
    let Some(newest) = notices.first().map(|notice| notice.at.to_string()) else { return ().into_erased() };
    let rows = notices.into_iter().map(|notice| view! { <NoticeRow notice=notice/> }).collect_view();
    view! {
        <section class="panel" aria-labelledby="notices" data-part="notices">
            <div class="panel-head">
                <h2 id="notices">{words.title}</h2>
                <form method="post" action="/ui/account/notices/read" class="ml-auto">
                    <input type="hidden" name="until" value=newest/>
                    <button class="btn btn-sm">{words.read}</button>
                </form>
            </div>
            <p class="px-4 pt-3 pb-2 text-sm text-muted">
                {words.intro}" "<a class="row-link" href="#password">{words.change}</a>
            </p>
            <ul class="rows">{rows}</ul>
        </section>
    }
    .into_erased()
}

#[component]
fn NoticeRow(notice: NoticeView) -> impl IntoView {
    let words = &t().server_pages().notices;
    let sentence = notice_sentence(&notice.kind);
    let actor = notice.session.is_none().then(|| words.by.of(&notice.actor));
    let origin = [notice.agent, notice.host, actor.unwrap_or_default()];
    let origin: Vec<String> = origin.into_iter().filter(|part| !part.is_empty()).collect();
    let end = notice.session.map(|session| {
        view! {
            <ConfirmedForm action=format!("/ui/account/sessions/{session}/end") label=words.end text=words.end_text
                confirm=words.end_confirm class="btn btn-sm btn-ghost text-bad"/>
        }
    });
    view! {
        <li class="fleet-row">
            <span class="min-w-0">
                <span class="font-medium">{sentence}</span>
                <span class="row-sub break-words">{origin.join(" · ")}</span>
                <span class="row-sub"><RelativeTime at=notice.at/></span>
            </span>
            {end}
        </li>
    }
    .into_erased()
}

fn notice_sentence(kind: &str) -> &'static str {
    let words = &t().server_pages().notices;
    match kind {
        "new_browser" => words.new_browser,
        "new_network" => words.new_network,
        "wrong_code" => words.wrong_code,
        "password_changed" => words.password_changed,
        "password_reset" => words.password_reset,
        "wrong_passkey" => words.wrong_passkey,
        "passkey_copied" => words.passkey_copied,
        "factor_added" => words.factor_added,
        "factor_removed" => words.factor_removed,
        "passkey_added" => words.passkey_added,
        "passkey_removed" => words.passkey_removed,
        "factors_removed" => words.factors_removed,
        "recovery_codes_renewed" => words.recovery_codes_renewed,
        _ => words.recovery_code_used,
    }
}
