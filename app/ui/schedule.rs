//! Delayed callbacks that are skipped once the component that scheduled them is removed.

#![expect(clippy::disallowed_methods, reason = "the one place that plans work, with a guard")]

use std::time::Duration;

use leptos::prelude::*;
use leptos::reactive::traits::IsDisposed;

/// Runs `act` before the next paint, unless `guard`, a signal that `act` reads, has been disposed of.
pub(crate) fn on_next_frame(guard: impl IsDisposed + 'static, act: impl FnOnce() + 'static) {
    request_animation_frame(move || {
        if !guard.is_disposed() {
            act();
        }
    });
}

/// Runs `act` after `delay`, unless `guard`, a signal that `act` reads, has been disposed of.
pub(crate) fn after(delay: Duration, guard: impl IsDisposed + 'static, act: impl FnOnce() + 'static) {
    let act = move || {
        if !guard.is_disposed() {
            act();
        }
    };
    set_timeout(act, delay);
}
