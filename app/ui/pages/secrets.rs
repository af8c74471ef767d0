//! Job secrets. Their values are never shown.

use leptos::prelude::*;

use crate::domain::access::Permission;
use crate::protocol::secrets::SecretView;
use crate::ui::backend::use_page_backend;
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

#[component]
pub(crate) fn SecretsPage() -> impl IntoView {
    let words = &t().server_pages().secrets;
    let page_backend = use_page_backend();
    let manages = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::SecretManage));
    let page = Resource::new(|| (), move |()| page_backend.secrets());
    let shown = move || {
        Suspend::new(async move {
            match page.await {
                Ok(page) => {
                    let (shared, personal): (Vec<_>, Vec<_>) =
                        page.secrets.into_iter().partition(|secret| secret.shared);
                    view! {
                        <div class="space-y-6">
                            <SecretList title=words.own id="own" secrets=personal removable=true/>
                            <SecretList title=words.shared id="shared" text=words.shared_text secrets=shared removable=manages/>
                            <SetSecretForm manages=manages/>
                        </div>
                    }
                    .into_erased()
                }
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=t().nav.secrets intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn SecretList(
    title: &'static str,
    id: &'static str,
    #[prop(optional)] text: Option<&'static str>,
    secrets: Vec<SecretView>,
    removable: bool,
) -> impl IntoView {
    let none = secrets.is_empty().then(|| view! { <p class="p-5 text-muted">{t().server_pages().secrets.none}</p> });
    let rows =
        secrets.into_iter().map(|secret| view! { <SecretRow secret=secret removable=removable/> }).collect_view();
    view! {
        <section class="panel" aria-labelledby=id data-part=id>
            <div class="panel-head">
                <h2 id=id>{title}</h2>
                {text.map(|text| view! { <span class="text-sm font-normal text-muted">{text}</span> })}
            </div>
            {none}
            <ul class="rows">{rows}</ul>
        </section>
    }
    .into_erased()
}

#[component]
fn SecretRow(secret: SecretView, removable: bool) -> impl IntoView {
    let words = &t().server_pages().secrets;
    let delivered = match secret.delivered_at {
        Some(at) => view! { {words.last_given}" "<RelativeTime at=at/> }.into_erased(),
        None => view! { {words.never_given} }.into_erased(),
    };
    let remove = removable.then(|| {
        view! {
            <ConfirmedForm action=format!("/ui/secrets/{}/remove", secret.name) label=words.remove
                named=Some(format!("{}: {}", words.remove, secret.name)) text=words.remove_text confirm=words.remove_confirm
                class="btn btn-sm btn-ghost text-bad">
                {secret.shared.then(|| view! { <input type="hidden" name="shared" value="on"/> })}
            </ConfirmedForm>
        }
    });
    view! {
        <li class="fleet-row">
            <span class="min-w-0">
                <span class="font-mono break-all">{secret.name.clone()}</span>
                <span class="row-sub">{words.set}" "<RelativeTime at=secret.updated_at/>" ("{secret.updated_by}"), "{delivered}</span>
            </span>
            {remove}
        </li>
    }
    .into_erased()
}

#[component]
fn SetSecretForm(manages: bool) -> impl IntoView {
    let words = &t().server_pages().secrets;
    let (problem, typed) = form_problem(FormName::Secret);
    let name = typed.get("name").cloned().unwrap_or_default();
    let share_choice = manages.then(|| {
        view! {
            <div class="choice">
                <input type="checkbox" class="checkbox checkbox-sm" id="secret-shared" name="shared"/>
                <label for="secret-shared"><span class="font-medium">{words.share}</span><span class="choice-text">{words.share_hint}</span></label>
            </div>
        }
    });
    view! {
        <section class="panel form" aria-labelledby="keep">
            <h2 id="keep" class="panel-title">{words.keep_title}</h2>
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            <form method="post" action="/ui/secrets" class="space-y-4">
                <Field id="name" label=words.name hint=words.name_hint>
                    <input class="input w-full font-mono" id="name" name="name" required=true maxlength="64" autocomplete="off"
                        autocapitalize="characters" aria-describedby="name-hint" value=name/>
                </Field>
                <Field id="value" label=words.value hint=words.value_hint>
                    <input class="input w-full font-mono" id="value" name="value" type="password" required=true minlength="8"
                        autocomplete="off" aria-describedby="value-hint"/>
                </Field>
                {share_choice}
                <div class="form-actions"><button class="btn btn-primary"><Icon glyph=Glyph::Key/>{words.keep}</button></div>
            </form>
        </section>
    }
    .into_erased()
}
