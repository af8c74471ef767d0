//! The first steps, shown until the server has a worker and a job.

use leptos::prelude::*;

use super::action::ButtonLink;
use super::icon::Icon;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// The steps; those that are known to be completed have a check mark.
#[component]
pub(crate) fn GettingStarted(has_worker: bool, has_contact: bool) -> impl IntoView {
    let words = &t().overview;
    let steps = [
        (words.step_worker, words.step_worker_text, None, has_worker),
        (words.step_connect, words.step_connect_text, None, has_contact),
        (words.step_config, words.step_config_text, Some("/configs/new"), false),
        (words.step_job, words.step_job_text, None, false),
    ];
    let (href, label, glyph) = match (has_worker, has_contact) {
        (false, _) => ("/admin/workers/new", words.step_worker, Glyph::Plus),
        (true, false) => ("/admin/workers", words.all_workers, Glyph::Workers),
        (true, true) => ("/train", words.step_job, Glyph::Train),
    };
    let items = steps.into_iter().enumerate().map(|(index, (title, text, href, done))| {
        let title = match href {
            Some(href) => view! { <a class="quiet-link" rel="external" href=href>{title}</a> }.into_erased(),
            None => title.into_erased(),
        };
        view! {
            <li class=if done { "start-step is-done" } else { "start-step" }>
                <span class="start-number">
                    {if done { view! { <Icon glyph=Glyph::Check/> }.into_erased() } else { (index + 1).into_erased() }}
                </span>
                <div>
                    <p class="font-medium">{title}{done.then(|| view! { <span class="sr-only">": "{words.done}</span> })}</p>
                    <p class="mt-0.5 text-muted">{text}</p>
                </div>
            </li>
        }
    });
    view! {
        <section class="panel start" aria-labelledby="start">
            <h2 id="start" class="text-lg font-semibold">{words.start_title}</h2>
            <p class="mt-1 text-muted">{words.start_intro}{(!has_contact).then(|| view! { " "{words.none_connected} })}</p>
            <ol class="start-steps">{items.collect_view()}</ol>
            <ButtonLink href=href label=label glyph=glyph class="btn btn-primary"/>
        </section>
    }
    .into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn first_steps_add_a_configuration_before_the_job() {
        let html = Owner::new().with(|| view! { <GettingStarted has_worker=true has_contact=true/> }.to_html());
        assert_eq!(html.matches("<li").count(), 4, "{html}");
        assert_eq!(html.matches("is-done").count(), 2, "{html}");
        let (config, job) = (html.find("href=\"/configs/new\""), html.find(t().overview.step_job_text));
        assert!(config.is_some() && config < job, "{html}");
    }
}
