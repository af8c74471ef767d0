//! Delayed callbacks that are skipped once the component that scheduled them is removed.

#![expect(clippy::disallowed_methods, reason = "the one place that schedules callbacks; a disposed signal skips them")]

use std::time::Duration;

use leptos::prelude::*;
use leptos::reactive::traits::IsDisposed;

/// Runs `callback` before the next paint, unless `signal`, a signal that `callback` reads, has been disposed of.
pub(crate) fn on_next_frame(signal: impl IsDisposed + 'static, callback: impl FnOnce() + 'static) {
    request_animation_frame(move || {
        if !signal.is_disposed() {
            callback();
        }
    });
}

/// Runs `callback` after `delay`, unless `signal`, a signal that `callback` reads, has been disposed of.
pub(crate) fn after(delay: Duration, signal: impl IsDisposed + 'static, callback: impl FnOnce() + 'static) {
    let callback = move || {
        if !signal.is_disposed() {
            callback();
        }
    };
    set_timeout(callback, delay);
}
