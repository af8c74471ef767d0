//! The operator's commands, as they are typed, against a server on a real socket.

mod auth;
mod commands;
mod configs;
pub mod desk;
mod follow;
mod jobs;
mod narrow;
mod offline;
mod refusals;
mod tls;
mod workers;

use std::sync::Arc;

use self::desk::Typed;
use super::screen::{Form, Screen};
use crate::boot::exit::Exit;
use crate::clock::SystemClock;

/// A screen for what asks no server.
fn offline_screen(out: &mut Vec<u8>, work: impl FnOnce(&mut Screen<'_>) -> Result<(), Exit>) -> Result<(), Exit> {
    work(&mut Screen {
        out,
        err: &mut Vec::new(),
        person: &mut Typed::default(),
        form: Form::Words,
        colour: false,
        width: None,
        draws: false,
        yes: false,
        clock: Arc::new(SystemClock),
    })
}
