//! The server's modules, where they look for each other.

pub(crate) use crate::{http_edge as edge, http_guards as guards};
