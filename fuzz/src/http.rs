//! The server's modules, where they look for each other.

pub(crate) use crate::{http_access as access, http_edge as edge};
