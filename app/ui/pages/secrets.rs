//! Secrets for jobs: what is kept, never its value.

use leptos::prelude::*;

use super::{Skeleton, use_desk};
use crate::domain::access::Permission;
use crate::protocol::secrets::SecretView;
use crate::ui::components::action::Question;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// The page.
#[component]
pub(crate) fn SecretsPage() -> impl IntoView {
    let words = &t().plain().secrets;
    let desk = use_desk();
    let manages = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::SecretManage));
    let page = Resource::new(|| (), move |()| desk.secrets());
    let shown = move || {
        Suspend::new(async move {
            match page.await {
                Ok(page) => {
                    let (shared, own): (Vec<_>, Vec<_>) = page.secrets.into_iter().partition(|secret| secret.shared);
                    view! {
                        <div class="space-y-6">
                            <List title=words.own id="own" secrets=own removable=true/>
                            <List title=words.shared id="shared" text=words.shared_text secrets=shared removable=manages/>
                            <Keep manages=manages/>
                        </div>
                    }
                    .erased()
                }
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=t().nav.secrets intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

#[component]
fn List(
    title: &'static str,
    id: &'static str,
    #[prop(optional)] text: Option<&'static str>,
    secrets: Vec<SecretView>,
    removable: bool,
) -> impl IntoView {
    let none = secrets.is_empty().then(|| view! { <p class="p-5 text-muted">{t().plain().secrets.none}</p> });
    let rows = secrets.into_iter().map(|secret| view! { <Entry secret=secret removable=removable/> }).collect_view();
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
    .erased()
}

#[component]
fn Entry(secret: SecretView, removable: bool) -> impl IntoView {
    let words = &t().plain().secrets;
    let given = match secret.given_at {
        Some(at) => view! { {words.last_given}" "<Moment at=at/> }.erased(),
        None => view! { {words.never_given} }.erased(),
    };
    let remove = removable.then(|| {
        view! {
            <Question action=format!("/ui/secrets/{}/remove", secret.name) label=words.remove
                named=Some(format!("{}: {}", words.remove, secret.name)) text=words.remove_text confirm=words.remove_confirm
                class="btn btn-sm btn-ghost text-bad">
                {secret.shared.then(|| view! { <input type="hidden" name="shared" value="on"/> })}
            </Question>
        }
    });
    view! {
        <li class="fleet-row">
            <span class="min-w-0">
                <span class="font-mono break-all">{secret.name.clone()}</span>
                <span class="row-sub">{words.set}" "<Moment at=secret.updated_at/>" ("{secret.updated_by}"), "{given}</span>
            </span>
            {remove}
        </li>
    }
    .erased()
}

#[component]
fn Keep(manages: bool) -> impl IntoView {
    let words = &t().plain().secrets;
    let (problem, typed) = refused(FormName::Secret);
    let name = typed.get("name").cloned().unwrap_or_default();
    let share = manages.then(|| {
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
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <form method="post" action="/ui/secrets" class="space-y-4">
                <Field id="name" label=words.name hint=words.name_hint>
                    <input class="input w-full font-mono" id="name" name="name" required=true maxlength="64" autocomplete="off"
                        autocapitalize="characters" aria-describedby="name-hint" value=name/>
                </Field>
                <Field id="value" label=words.value hint=words.value_hint>
                    <input class="input w-full font-mono" id="value" name="value" type="password" required=true minlength="8"
                        autocomplete="off" aria-describedby="value-hint"/>
                </Field>
                {share}
                <div class="form-actions"><button class="btn btn-primary"><Icon glyph=Glyph::Key/>{words.keep}</button></div>
            </form>
        </section>
    }
    .erased()
}
