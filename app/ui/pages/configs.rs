//! The list of configurations.

use leptos::prelude::*;

use crate::domain::access::Permission;
use crate::protocol::configs::{ConfigView, ConfigsPage};
use crate::ui::backend::use_page_backend;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::format::config_url;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::prefs::Prefs;

#[component]
pub(crate) fn ConfigsListPage() -> impl IntoView {
    let words = &t().server_pages().configs;
    let page_backend = use_page_backend();
    let configs = Resource::new(|| (), move |()| page_backend.configs());
    let shown = move || {
        Suspend::new(async move {
            match configs.await {
                Ok(page) if page.configs.is_empty() => view! { <div class="panel"><NoConfigs/></div> }.into_erased(),
                Ok(page) => view! { <ConfigTable page=page/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.title intro=words.intro><NewConfigLink/></PageHeader>
        <div data-part="configs"><Suspense fallback=Skeleton>{shown}</Suspense></div>
    }
    .into_erased()
}

/// The link to a new configuration, if permitted.
#[component]
fn NewConfigLink() -> impl IntoView {
    let can_create = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::ConfigEdit));
    can_create.then(|| {
        view! { <a class="btn btn-sm btn-primary" href="/configs/new"><Icon glyph=Glyph::Plus/>{t().server_pages().configs.new}</a> }
    })
    .into_erased()
}

/// Shown if there is no configuration: how to create one.
#[component]
pub(crate) fn NoConfigs() -> impl IntoView {
    let words = &t().server_pages().train;
    view! {
        <EmptyPanel glyph=Glyph::File title=words.none text=words.none_hint>
            <NewConfigLink/>
            <p class="w-full">"CLI: "<code class="font-mono text-sm">"simpletuner configs push DIRECTORY"</code></p>
            <p class="w-full">"API: "<code class="font-mono text-sm">"PUT /api/configs/{name}"</code></p>
        </EmptyPanel>
    }
    .into_erased()
}

#[component]
fn ConfigTable(page: ConfigsPage) -> impl IntoView {
    let words = &t().server_pages().configs;
    let submits = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::JobSubmit));
    let rows =
        page.configs.into_iter().map(|config| view! { <ConfigRow config=config submits=submits/> }).collect_view();
    view! {
        <div class="panel table-scroll">
            <table class="data">
                <caption class="sr-only">{words.caption}</caption>
                <thead>
                    <tr>
                        <th scope="col">{words.name}</th>
                        <th scope="col" class="max-sm:hidden">{words.what}</th>
                        <th scope="col">{words.changed}</th>
                        {submits.then(|| view! { <th scope="col"><span class="sr-only">{words.train}</span></th> })}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_erased()
}

#[component]
fn ConfigRow(config: ConfigView, submits: bool) -> impl IntoView {
    let (words, train) = (&t().server_pages().configs, &t().server_pages().train);
    let href = config_url(&config.name);
    let train_url = format!("/train{}", query_string(&[("config", Some(config.name.clone()))]));
    let label = format!("{}: {}", words.train, config.name);
    view! {
        <tr>
            <th scope="row">
                <a class="row-link" href=href>{config.name.clone()}</a>
                <span class="row-sub whitespace-nowrap">{train.revision.of(config.revision)}" · "{train.files.of(config.files.len() as u64)}</span>
            </th>
            <td class="max-sm:hidden"><ConfigSummary config=config.clone()/></td>
            <td><RelativeTime at=config.updated_at/></td>
            {submits.then(|| view! {
                <td class="num"><a class="btn btn-sm" href=train_url aria-label=label><Icon glyph=Glyph::Train/>{words.train}</a></td>
            })}
        </tr>
    }
    .into_erased()
}

/// The main settings of a configuration, as chips.
#[component]
pub(crate) fn ConfigSummary(config: ConfigView) -> impl IntoView {
    let chips = config.summary.into_iter().map(|(key, value)| {
        view! { <span class="chip"><span class="text-muted">{key}"="</span><span>{value}</span></span> }
    });
    view! { <span class="flex flex-wrap gap-1">{chips.collect_view()}</span> }.into_erased()
}
