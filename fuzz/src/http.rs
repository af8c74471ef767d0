//! Modules of the server, under the paths by which they import each other.

pub(crate) use crate::{http_edge as edge, http_guards as guards};
