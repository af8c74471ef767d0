//! The HTTP status of a page that cannot show the requested object.

/// Sets the HTTP status during server rendering.
#[cfg(feature = "ssr")]
pub(crate) fn set_status(status: u16) {
    let response = leptos::prelude::use_context::<leptos_axum::ResponseOptions>();
    if let (Some(response), Ok(status)) = (response, axum::http::StatusCode::from_u16(status)) {
        response.set_status(status);
    }
}

/// Does nothing in the browser, which has already received the status.
#[cfg(not(feature = "ssr"))]
pub(crate) fn set_status(_status: u16) {}
