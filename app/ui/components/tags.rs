//! Tags of jobs as chips.

use std::collections::BTreeSet;

use leptos::prelude::*;

use crate::protocol::jobs::JobsQuery;
use crate::ui::erase::Erase;
use crate::ui::page_query::jobs_url;

/// Renders each tag as a link to the jobs that have it. Tags beyond `max` are only counted; the title of the count
/// lists them.
pub(crate) fn tag_chips(tags: &BTreeSet<String>, max: usize) -> AnyView {
    if tags.is_empty() {
        return ().into_erased();
    }
    let overflow: Vec<&str> = tags.iter().skip(max).map(String::as_str).collect();
    let overflow = (!overflow.is_empty()).then(|| {
        view! { <li class="text-muted" title=overflow.join("\n")>{format!("+{}", overflow.len())}</li> }
    });
    let chips = tags.iter().take(max).map(|tag| {
        let href = jobs_url(&JobsQuery { tag: Some(tag.clone()), ..JobsQuery::default() });
        view! { <li><a class="chip chip-link" href=href title=tag.clone()>{tag.clone()}</a></li> }
    });
    view! { <ul class="labels">{chips.collect_view()}{overflow}</ul> }.into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn tags_are_links_and_the_others_are_counted() {
        let html = |max| {
            let tags = ["a b", "c", "d"].map(str::to_owned).into();
            Owner::new().with(|| tag_chips(&tags, max).to_html().replace("<!>", ""))
        };
        assert!(html(3).contains("href=\"/jobs?tag=a+b\"") && !html(3).contains("text-muted"));
        assert!(html(1).contains(">+2<") && html(1).contains("title=\"c\nd\""), "{}", html(1));
        assert!(!Owner::new().with(|| tag_chips(&BTreeSet::new(), 1).to_html()).contains("<ul"));
    }
}
