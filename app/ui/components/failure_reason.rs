//! Why a job or an attempt failed: the first line of the error is the headline, the other lines are a block below it.

use leptos::prelude::*;

use super::icon::Icon;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::domain::text::split_headline;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::logs::view_state::LogViewState;

/// A block with more lines is folded.
const FOLD_AFTER_LINES: usize = 12;

/// The error in full.
#[component]
pub(crate) fn FailureReason(
    error: String,
    /// The URL of the error's line in the log.
    log: Option<String>,
) -> impl IntoView {
    let words = &t().job;
    let (first, rest) = split_headline(&error);
    let (first, rest) = (first.to_owned(), rest.to_owned());
    let is_long = rest.lines().count() > FOLD_AFTER_LINES;
    let block = (!rest.is_empty()).then(|| {
        view! { <pre class="source" tabindex="0" role="region" aria-label=words.full_error><code>{rest}</code></pre> }
    });
    let block = if is_long {
        view! { <details class="fold"><summary>{words.full_error}</summary>{block}</details> }.into_erased()
    } else {
        block.into_erased()
    };
    view! {
        <div class="notice notice-bad mb-0">
            <Icon glyph=Glyph::Warning/>
            <div class="reason">
                <p class="row-sub">{words.what_went_wrong}</p>
                <p class="reason-head">{first}</p>
                {block}
                {log.map(|href| view! { <p><a class="quiet-link" href=href>{words.show_in_log}</a></p> })}
            </div>
        </div>
    }
    .into_erased()
}

/// The first line of an error, for a table. The tooltip shows it in full, because a table truncates it.
#[component]
pub(crate) fn FailureReasonLine(error: String) -> impl IntoView {
    let first = split_headline(&error).0.to_owned();
    let title = first.clone();
    view! { <span class="row-sub reason-line" title=title>{first}</span> }.into_erased()
}

/// Returns the URL of a line in the log of an attempt.
pub(crate) fn log_line_url(job: &JobId, attempt: AttemptNumber, line: u64) -> String {
    LogViewState { attempt: Some(attempt.0), selected_lines: Some((line, line)), ..LogViewState::default() }.href(job)
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    const LONG: &str = "ValueError: <no> images\nTraceback (most recent call last):\n  File \"a.py\", line 1";

    fn rendered(view: impl FnOnce() -> AnyView + Send + 'static) -> String {
        Owner::new().with(|| view().to_html().replace("<!>", ""))
    }

    #[test]
    fn headline_is_above_its_block_and_links_to_the_log() {
        let href = log_line_url(&JobId::parse("j_1").expect("an id"), AttemptNumber(2), 70_123);
        assert_eq!(href, "/jobs/j_1/log?attempt=2&line=70123");
        let html = rendered(move || view! { <FailureReason error=LONG.to_owned() log=Some(href)/> }.into_erased());
        assert!(html.contains(r#"<p class="reason-head">ValueError: &lt;no&gt; images</p>"#), "{html}");
        let block = "<code>Traceback (most recent call last):\n  File \"a.py\", line 1</code></pre>";
        assert!(html.contains(block) && !html.contains("<details"), "{html}");
        let link = r#"<a href="/jobs/j_1/log?attempt=2&amp;line=70123" class="quiet-link">Show in log</a>"#;
        assert!(html.contains(link), "{html}");
        let html = rendered(|| view! { <FailureReason error="gone".to_owned() log=None/> }.into_erased());
        assert!(!html.contains("<pre") && !html.contains("<a "), "{html}");
    }

    #[test]
    fn a_long_block_is_folded() {
        let error = format!("ValueError: x{}", "\n  File".repeat(FOLD_AFTER_LINES + 1));
        let html = rendered(move || view! { <FailureReason error=error log=None/> }.into_erased());
        assert!(html.contains("<details class=\"fold\"><summary>Full error</summary><pre"), "{html}");
    }

    #[test]
    fn table_shows_one_line_of_the_failure() {
        let html = rendered(|| view! { <FailureReasonLine error=LONG.to_owned()/> }.into_erased());
        assert!(html.contains(">ValueError: &lt;no&gt; images</span>"), "{html}");
        assert!(html.contains("title=\"ValueError: &lt;no&gt; images\""), "{html}");
    }
}
