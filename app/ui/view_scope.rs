//! Keeps a view usable until its replacement is in the page.

use leptos::prelude::*;
use leptos::tachys::reactive_graph::OwnedView;
use leptos::tachys::view::any_view::AnyView;

use super::erase::Erase;

/// The owner of a component, which outlives each view that a `Suspend` in it renders.
///
/// A `Suspend` that runs again immediately disposes of all signals of its view. Within a `Transition` that view remains
/// in the page until the next one is ready, and its event handlers would read disposed signals.
#[derive(Clone)]
pub(crate) struct ViewScope(Owner);

impl ViewScope {
    pub fn current() -> Self {
        Self(Owner::current().unwrap_or_default())
    }

    /// Renders a view whose signals are disposed of when it is replaced or removed.
    pub fn render(&self, view: impl FnOnce() -> AnyView) -> AnyView {
        let owner = self.0.child();
        let view = owner.with(view);
        OwnedView::new_with_owner(view, owner).into_erased()
    }
}
