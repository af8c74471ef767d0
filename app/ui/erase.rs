//! Type-erased views that keep the browser's program small.
//!
//! `into_any` of Leptos compiles four ways to hydrate each view. The asynchronous one, for routes that are fetched
//! during hydration, was a sixth of the code; our routes are fetched before it ([`super::lazy_routes`]).

use leptos::attr::Attribute;
use leptos::prelude::*;
use leptos::tachys::hydration::Cursor;
use leptos::tachys::view::any_view::AnyView;
use leptos::tachys::view::{Position, PositionState};

use leptos::attr::any_attribute::AnyAttribute;

use super::browser;

/// Erases the type of a view.
pub(crate) trait Erase: RenderHtml + Send + Sized {
    /// Returns the view as [`AnyView`] without asynchronous hydration.
    fn into_erased(self) -> AnyView {
        Erased(self).into_any()
    }
}

impl<T: RenderHtml + Send> Erase for T {}

/// Forwards everything except `hydrate_async`, whose default implementation hydrates synchronously.
struct Erased<T>(T);

impl<T: Render> Render for Erased<T> {
    type State = T::State;

    fn build(self) -> Self::State {
        self.0.build()
    }

    fn rebuild(self, state: &mut Self::State) {
        // Type-erased attributes are removed and set again, and an element without `href`
        // or `tabindex` loses the focus.
        let focused = browser::focused_node();
        self.0.rebuild(state);
        browser::restore_focus(focused);
    }
}

impl<T: RenderHtml> AddAnyAttr for Erased<T> {
    type Output<SomeNewAttr: Attribute> = T::Output<SomeNewAttr>;

    fn add_any_attr<NewAttr: Attribute>(self, attr: NewAttr) -> Self::Output<NewAttr>
    where
        Self::Output<NewAttr>: RenderHtml,
    {
        self.0.add_any_attr(attr)
    }
}

impl<T: RenderHtml> RenderHtml for Erased<T> {
    type AsyncOutput = T::AsyncOutput;
    type Owned = Erased<T::Owned>;
    const MIN_LENGTH: usize = T::MIN_LENGTH;
    const EXISTS: bool = T::EXISTS;

    fn dry_resolve(&mut self) {
        self.0.dry_resolve();
    }

    async fn resolve(self) -> Self::AsyncOutput {
        self.0.resolve().await
    }

    fn html_len(&self) -> usize {
        self.0.html_len()
    }

    fn to_html_with_buf(
        self,
        buf: &mut String,
        position: &mut Position,
        escape: bool,
        mark_branches: bool,
        extra_attrs: Vec<AnyAttribute>,
    ) {
        self.0.to_html_with_buf(buf, position, escape, mark_branches, extra_attrs);
    }

    fn to_html_async_with_buf<const OUT_OF_ORDER: bool>(
        self,
        buf: &mut leptos::tachys::ssr::StreamBuilder,
        position: &mut Position,
        escape: bool,
        mark_branches: bool,
        extra_attrs: Vec<AnyAttribute>,
    ) {
        self.0.to_html_async_with_buf::<OUT_OF_ORDER>(buf, position, escape, mark_branches, extra_attrs);
    }

    fn hydrate<const FROM_SERVER: bool>(self, cursor: &Cursor, position: &PositionState) -> Self::State {
        self.0.hydrate::<FROM_SERVER>(cursor, position)
    }

    fn into_owned(self) -> Self::Owned {
        Erased(self.0.into_owned())
    }
}
