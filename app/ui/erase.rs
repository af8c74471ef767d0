//! Views behind one type, made for the size of the browser's half.
//!
//! Leptos' own `into_any` compiles four ways to hydrate each view, one of them an asynchronous one for routes that are
//! fetched while hydration waits; ours are fetched before ([`super::parts`]), and it was a sixth of the code.

use leptos::attr::Attribute;
use leptos::prelude::*;
use leptos::tachys::hydration::Cursor;
use leptos::tachys::view::any_view::AnyView;
use leptos::tachys::view::{Position, PositionState};

use leptos::attr::any_attribute::AnyAttribute;

use super::browser;

/// Hides the type of a view.
pub(crate) trait Erase: RenderHtml + Send + Sized {
    /// The view as [`AnyView`], without asynchronous hydration.
    fn into_erased(self) -> AnyView {
        Erased(self).into_any()
    }
}

impl<T: RenderHtml + Send> Erase for T {}

/// Passes everything on except `hydrate_async`, whose default hydrates at once.
struct Erased<T>(T);

impl<T: Render> Render for Erased<T> {
    type State = T::State;

    fn build(self) -> Self::State {
        self.0.build()
    }

    fn rebuild(self, state: &mut Self::State) {
        // Attributes behind one type are taken off and put on anew, and who has no `href` or `tabindex` loses the focus.
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
