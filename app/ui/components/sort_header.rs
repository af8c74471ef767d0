//! Headings of columns that a table can be sorted by: links, so that the address has the order.

use leptos::prelude::*;

use crate::ui::erase::Erase;

/// A column by which the table can be sorted.
#[derive(Debug, Clone)]
pub(crate) struct SortColumn {
    /// `ascending` or `descending`, if the table is sorted by this column.
    pub sorted: Option<&'static str>,
    /// The URL of the table sorted by this column, or in the opposite order if it already is.
    pub href: String,
}

impl SortColumn {
    /// A column of a table with this order, or with the default one. `url` is the address of the table with an order.
    pub fn new(
        current: Option<&str>,
        default: &str,
        by: &str,
        largest_first: bool,
        url: impl Fn(Option<String>) -> String,
    ) -> Self {
        let current = current.unwrap_or(default);
        let (sorted, is_descending) = match current.strip_prefix('-') {
            Some(name) if name == by => (Some("descending"), false),
            None if current == by => (Some("ascending"), true),
            _ => (None, largest_first),
        };
        let order = if is_descending { format!("-{by}") } else { by.to_owned() };
        Self { sorted, href: url((order != default).then_some(order)) }
    }
}

pub(crate) fn sortable_header(class: impl Into<String>, column: SortColumn, label: impl Into<String>) -> AnyView {
    let (class, sorted) = (class.into(), column.sorted);
    let link = sort_link(column, &label.into());
    view! { <th scope="col" role="columnheader" class=class aria-sort=sorted>{link}</th> }.into_erased()
}

/// The link in a heading.
pub(crate) fn sort_link(column: SortColumn, label: &str) -> AnyView {
    view! { <a class="sort" href=column.href title=label.to_owned()>{label.to_owned()}</a> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_again_reverses_the_order() {
        let column = |current, by, largest_first| {
            let column = SortColumn::new(current, "name", by, largest_first, Option::unwrap_or_default);
            (column.sorted, column.href)
        };
        assert_eq!(column(None, "name", false), (Some("ascending"), "-name".to_owned()));
        let by_default = (Some("descending"), String::new());
        assert_eq!(column(Some("-name"), "name", false), by_default, "sorting by name is the default");
        assert_eq!(column(None, "seen", true), (None, "-seen".to_owned()));
        assert_eq!(column(Some("-seen"), "seen", true), (Some("descending"), "seen".to_owned()));
    }
}
