//! The heading of a column. Its right edge is dragged to set the width of the column.

use leptos::attr::custom::custom_attribute;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use super::widths::{self, ColumnWidths};
use crate::protocol::jobs::JobsQuery;
use crate::ui::browser;
use crate::ui::components::sort_header::{SortColumn, sort_link};
use crate::ui::erase::Erase;
use crate::ui::page_query::jobs_url;

/// What a heading shows and does.
pub(super) struct Heading {
    /// The key of its width.
    pub column: String,
    pub label: String,
    /// None if the list cannot be sorted by it.
    pub sort: Option<SortColumn>,
    pub class: String,
    /// Its width unless the user has set one.
    pub default_width: ColumnWidth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnWidth {
    /// In CSS pixels.
    Pixels(u16),
    Class(&'static str),
}

impl Heading {
    pub fn render(self, query: &JobsQuery, widths: RwSignal<ColumnWidths>) -> AnyView {
        let Self { column, label, sort, class, default_width } = self;
        let sorted = sort.as_ref().and_then(|sort| sort.sorted);
        let title = sort.is_none().then(|| label.clone());
        let text = match sort {
            Some(sort) => sort_link(sort, &label),
            None => label.into_erased(),
        };
        let key = column.clone();
        let of_column = column.clone();
        let width =
            Memo::new(move |_| widths.with(|widths| widths.get(&of_column)).map_or(default_width, ColumnWidth::Pixels));
        let class = move || match width.get() {
            ColumnWidth::Pixels(_) => class.clone(),
            ColumnWidth::Class(width_class) => format!("{class} {width_class}"),
        };
        let in_pixels = custom_attribute("width", move || match width.get() {
            ColumnWidth::Pixels(pixels) => Some(pixels),
            ColumnWidth::Class(_) => None,
        });
        view! {
            <th scope="col" role="columnheader" class=class aria-sort=sorted title=title data-column={column} {..in_pixels}>
                {text}
                <ResizeHandle column=key widths=widths query=query.clone()/>
            </th>
        }
        .into_erased()
    }
}

/// Where the pointer was pressed, and the width of the column then.
#[derive(Clone, Copy)]
struct Drag {
    x: f64,
    width: u16,
}

impl Drag {
    /// Returns the new width; none if the pointer is where it was.
    fn width_at(self, event: &leptos::ev::PointerEvent) -> Option<u16> {
        let distance = f64::from(event.client_x()) - self.x;
        (distance != 0.0).then(|| widths::clamp(f64::from(self.width) + distance))
    }
}

/// Only for pointers: on the page of columns and views, widths are set by links. All columns keep the widths that they
/// have when one is dragged, so that none jumps. A double click makes all widths automatic again.
#[component]
fn ResizeHandle(column: String, widths: RwSignal<ColumnWidths>, query: JobsQuery) -> impl IntoView {
    let navigate = use_navigate();
    let save = Callback::new(move |widths: ColumnWidths| {
        let url = jobs_url(&JobsQuery { widths: widths.to_text(), ..query.clone() });
        navigate(&url, NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() });
    });
    let drag = RwSignal::new(None::<Drag>);
    let key = StoredValue::new(column);
    let press = move |event: leptos::ev::PointerEvent| {
        if event.button() != 0 {
            return;
        }
        event.prevent_default();
        browser::capture_pointer(&event);
        let shown: ColumnWidths = browser::column_widths(&event).into_iter().collect();
        let start = key.with_value(|column| shown.get(column));
        drag.set(start.map(|width| Drag { x: f64::from(event.client_x()), width }));
    };
    let point = move |event: leptos::ev::PointerEvent| {
        let Some(width) = drag.get_untracked().and_then(|drag| drag.width_at(&event)) else { return };
        let shown: ColumnWidths = browser::column_widths(&event).into_iter().collect();
        widths.set(key.with_value(|column| shown.with(column, width)));
    };
    let release = move |event: leptos::ev::PointerEvent| {
        let dragged = drag.get_untracked().and_then(|drag| drag.width_at(&event));
        drag.set(None);
        if dragged.is_some() {
            save.run(widths.get_untracked());
        }
    };
    view! {
        <span class="resize-handle js-only" aria-hidden="true" on:pointerdown=press on:pointermove=point on:pointerup=release
            on:pointercancel=move |_| drag.set(None) on:dblclick=move |_| save.run(ColumnWidths::default())></span>
    }
    .into_erased()
}
