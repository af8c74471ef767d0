//! The HTTP status of a page that could not show what it was asked for.

/// Sets the page's status while it is rendered on the server.
#[cfg(feature = "ssr")]
pub(crate) fn set_status(status: u16) {
    let response = leptos::prelude::use_context::<leptos_axum::ResponseOptions>();
    if let (Some(response), Ok(status)) = (response, axum::http::StatusCode::from_u16(status)) {
        response.set_status(status);
    }
}

/// In the browser the page is already there.
#[cfg(not(feature = "ssr"))]
pub(crate) fn set_status(_status: u16) {}
