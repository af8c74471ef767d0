//! The options of a page's charts as a signal, and in its address.

use std::sync::Arc;

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};
use leptos_router::params::ParamsMap;

use super::options::{ChartOptions, query_of};

type Navigate = Arc<dyn Fn(&str, NavigateOptions) + Send + Sync>;

/// The options of the charts of a page. They are those of its address, except while the reader moves a control.
#[derive(Clone, Copy)]
pub(crate) struct ChartState {
    options: RwSignal<ChartOptions>,
    params: Memo<ParamsMap>,
    path: Memo<String>,
    navigate: StoredValue<Navigate>,
}

impl ChartState {
    /// Returns the state of the current page.
    pub fn of_page() -> Self {
        let (params, path) = (use_query_map(), use_location().pathname);
        let in_address = Memo::new(move |_| params.with(ChartOptions::from_params));
        let options = RwSignal::new(in_address.get_untracked());
        Effect::new(move |_| {
            let read = in_address.get();
            if options.with_untracked(|options| *options != read) {
                options.set(read);
            }
        });
        Self { options, params, path, navigate: StoredValue::new(Arc::new(use_navigate())) }
    }

    pub fn with<T>(self, read: impl FnOnce(&ChartOptions) -> T) -> T {
        self.options.with(read)
    }

    pub fn with_untracked<T>(self, read: impl FnOnce(&ChartOptions) -> T) -> T {
        self.options.with_untracked(read)
    }

    /// Changes the options, and not the address: it would change with each pixel of a slider.
    pub fn preview(self, change: impl FnOnce(&mut ChartOptions)) {
        self.options.update(change);
    }

    /// Changes the options and the address.
    pub fn update(self, change: impl FnOnce(&mut ChartOptions)) {
        self.options.update(change);
        let address = untrack(|| self.with(|options| self.address(options)));
        let options = NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
        self.navigate.get_value()(&address, options);
    }

    /// Returns the path of the page.
    pub fn path(self) -> String {
        self.path.get()
    }

    /// Returns the address of the page with changed options.
    pub fn address_with(self, change: impl FnOnce(&mut ChartOptions)) -> String {
        let mut options = self.options.get();
        change(&mut options);
        self.address(&options)
    }

    /// Returns the parameters of the page, for hidden fields of a form.
    pub fn fields(self) -> Vec<(String, String)> {
        let params = self.params.with(|params| self.with(|options| options.in_params(params)));
        params.into_iter().map(|(key, value)| (key.into_owned(), value)).collect()
    }

    fn address(self, options: &ChartOptions) -> String {
        let query = self.params.with(|params| query_of(&options.in_params(params)));
        format!("{}{query}", self.path.get())
    }
}
