//! The tabs of one browser: they tell each other things, and one of them leads.
//!
//! Who leads holds a lock of the browser's, which goes to the next when its tab is closed or dies. Browsers have locks on
//! https and localhost only; elsewhere each tab leads for itself and tells nobody.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Function, Object, Promise, Reflect};
use leptos::prelude::{document, window};
use send_wrapper::SendWrapper;
use wasm_bindgen::JsValue;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, UnwrapThrowExt};
use web_sys::{BroadcastChannel, MessageEvent, VisibilityState};

use super::TabEvent;

/// The lock of the tab that leads, and where tabs talk.
const CHANNEL_NAME: &str = "simpletuner";

/// A name that no other tab has.
pub(crate) fn tab_id() -> String {
    format!("{:x}-{:x}", super::now().0, (js_sys::Math::random() * 4_294_967_296.0).to_bits())
}

/// Whether this tab can be seen.
pub(crate) fn is_visible() -> bool {
    document().visibility_state() == VisibilityState::Visible
}

/// This tab among the others.
#[derive(Clone)]
pub(crate) struct TabChannel(SendWrapper<Rc<Inner>>);

struct Inner {
    shared: Option<(Locks, BroadcastChannel)>,
    listener: Box<dyn Fn(TabEvent)>,
    /// Gives the lock back.
    release: RefCell<Option<Function>>,
    /// The lock was asked for and has not come.
    lock_requested: RefCell<bool>,
}

/// Comes among the others, for as long as the page lives.
pub(crate) fn join_tabs(listener: impl Fn(TabEvent) + 'static) -> TabChannel {
    let shared = locks().zip(BroadcastChannel::new(CHANNEL_NAME).ok());
    let (release, asked) = (RefCell::default(), RefCell::default());
    let tabs = TabChannel(SendWrapper::new(Rc::new(Inner {
        shared,
        listener: Box::new(listener),
        release,
        lock_requested: asked,
    })));
    tabs.listen();
    tabs
}

/// The browser's locks (Web Locks API; `web-sys` has no stable names for it).
struct Locks {
    locks: Object,
    request: Function,
}

fn locks() -> Option<Locks> {
    let locks: Object = Reflect::get(&window().navigator(), &"locks".into()).ok()?.dyn_into().ok()?;
    let request = Reflect::get(&locks, &"request".into()).ok()?.dyn_into().ok()?;
    Some(Locks { locks, request })
}

impl TabChannel {
    /// Tells the others.
    pub fn broadcast(&self, text: &str) {
        if let Some((_, channel)) = &self.0.shared {
            // One that is closed is so with its page.
            let _told = channel.post_message(&JsValue::from_str(text));
        }
    }

    /// Asks to lead; [`TabEvent::Leads`] comes when it does.
    pub fn request_leadership(&self) {
        if self.0.lock_requested.replace(true) {
            return;
        }
        let inner = Rc::clone(&self.0);
        let leads = move || {
            inner.lock_requested.replace(false);
            (inner.listener)(TabEvent::BecameLeader);
        };
        let Some((locks, _)) = &self.0.shared else {
            // Whoever asks is in the middle of something.
            leptos::task::spawn_local(async move { leads() });
            return;
        };
        let inner = Rc::clone(&self.0);
        // The lock is held for as long as this promise is not kept.
        let held = Closure::once_into_js(move || {
            let promise = Promise::new(&mut |keep, _| drop(inner.release.replace(Some(keep))));
            leads();
            promise
        });
        // It ends with the lock, and nobody waits for that.
        let _held = locks.request.call2(&locks.locks, &CHANNEL_NAME.into(), &held);
    }

    /// Leads no more.
    pub fn step_down(&self) {
        if let Some(release) = self.0.release.take() {
            let _kept = release.call0(&JsValue::UNDEFINED);
        }
    }

    fn listen(&self) {
        let inner = Rc::clone(&self.0);
        if let Some((_, channel)) = &self.0.shared {
            let heard = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
                (inner.listener)(TabEvent::Message(event.data().as_string().unwrap_or_default()));
            });
            channel.set_onmessage(Some(heard.into_js_value().unchecked_ref()));
        }
        let inner = Rc::clone(&self.0);
        let looked = Closure::<dyn Fn()>::new(move || {
            let event = if is_visible() { TabEvent::Shown } else { TabEvent::Hidden };
            (inner.listener)(event);
        });
        let inner = Rc::clone(&self.0);
        let closed = Closure::<dyn Fn()>::new(move || (inner.listener)(TabEvent::Closed));
        let on = |target: &web_sys::EventTarget, event, closure: JsValue| {
            target.add_event_listener_with_callback(event, closure.unchecked_ref()).unwrap_throw();
        };
        on(&document(), "visibilitychange", looked.into_js_value());
        on(&window(), "pagehide", closed.into_js_value());
    }
}
