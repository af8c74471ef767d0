//! Links that a job's log contains, such as to its run in an experiment tracker. They are text from outside, so each
//! begins with the name of its service.

use leptos::prelude::*;

use crate::domain::log_text::links::LinkedService;
use crate::protocol::jobs::JobView;
use crate::protocol::logs::LogLink;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::safe_url::SafeUrl;

/// The links of the newest attempt that has any.
#[component]
pub(crate) fn TrackerLinks(job: Signal<JobView>) -> impl IntoView {
    let links = Memo::new(move |_| job.with(newest_links));
    (move || {
        let links = links.get();
        (!links.is_empty()).then(|| {
            view! { <ul class="tracker-links" aria-label=t().log.links>{links.into_iter().map(item).collect_view()}</ul> }
        })
    })
    .into_erased()
}

fn newest_links(job: &JobView) -> Vec<LogLink> {
    let attempts = job.attempts.iter().flatten();
    attempts.rev().map(|attempt| &attempt.links).find(|links| !links.is_empty()).cloned().unwrap_or_default()
}

fn item(LogLink { service, url }: LogLink) -> AnyView {
    let name = service_name(service);
    if url.starts_with("https://") {
        let detail = url.rsplit('/').next().unwrap_or_default().to_owned();
        let href = SafeUrl::from_data(&url).into_string();
        view! { <li><a class="quiet-link" href=href title=url rel="external noopener noreferrer nofollow">{name}" "<span>{detail}</span></a></li> }
            .into_erased()
    } else {
        view! { <li title=t().log.private_link>{name}" "<code>{url}</code></li> }.into_erased()
    }
}

fn service_name(service: LinkedService) -> &'static str {
    match service {
        LinkedService::WeightsAndBiases => "Weights & Biases",
        LinkedService::HuggingFace => "Hugging Face",
        LinkedService::Comet => "Comet",
        LinkedService::TensorBoard => "TensorBoard",
        LinkedService::MlFlow => "MLflow",
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    fn rendered(service: LinkedService, url: &str) -> String {
        let link = LogLink { service, url: url.to_owned() };
        Owner::new().with(|| item(link).to_html().replace("<!>", ""))
    }

    #[test]
    fn public_address_is_a_link_that_begins_with_its_service() {
        let html = rendered(LinkedService::WeightsAndBiases, "https://wandb.ai/a/b/runs/c");
        assert!(html.contains(r#"href="https://wandb.ai/a/b/runs/c""#), "{html}");
        assert!(html.contains(r#"rel="external noopener noreferrer nofollow""#), "{html}");
        assert!(html.contains("Weights &amp; Biases <span>c</span></a>"), "{html}");
    }

    #[test]
    fn other_addresses_are_text() {
        for url in ["http://localhost:6006/", "javascript:alert(1)", "\"><b>x"] {
            let html = rendered(LinkedService::TensorBoard, url);
            assert!(!html.contains("<a ") && !html.contains("<b>"), "{html}");
        }
    }
}
