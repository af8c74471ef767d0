//! The few things that only a browser can do. The server's versions do nothing, and nothing calls them there:
//! these functions are used in effects and event handlers only.

#[cfg(feature = "hydrate")]
mod real;
#[cfg(feature = "hydrate")]
pub(crate) use real::{carried_words, copy, now, send, set_theme, share_of_width, submit_form_of, subscribe};

#[cfg(not(feature = "hydrate"))]
mod stub;
#[cfg(not(feature = "hydrate"))]
pub(crate) use stub::{copy, now, send, set_theme, share_of_width, submit_form_of, subscribe};

/// What a subscription tells its listener.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only a browser has events"))]
pub(crate) enum StreamEvent {
    /// The stream is open.
    Opened,
    /// One message's data.
    Message(String),
    /// The stream broke and was closed.
    Failed,
}

/// Ends its subscription when called.
pub(crate) type Unsubscribe = Box<dyn FnOnce() + Send + Sync>;
