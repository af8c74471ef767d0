//! The star of a job: a button with which a user marks it to find it again.

use leptos::prelude::*;

use super::icon::Icon;
use crate::protocol::jobs::JobView;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::permissions::is_reader;

/// A form with one button. `back` is the page to which the browser returns.
pub(crate) fn star_button(job: &JobView, back: String) -> AnyView {
    let is_starred = job.starred_by.iter().any(|user| is_reader(user));
    let label = format!("{}: {}", t().jobs.star, job.title());
    view! {
        <form method="post" action=format!("/ui/jobs/{}/star", job.job_id) class="star">
            <input type="hidden" name="back" value=back/>
            <button class="icon-button" name="starred" value=(!is_starred).to_string() aria-pressed=is_starred.to_string()
                aria-label=label title=t().jobs.star><Icon glyph=Glyph::Star/></button>
        </form>
    }
    .into_erased()
}
