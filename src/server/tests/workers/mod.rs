//! Workers, as administrators see them.

mod forms;
mod history;
mod routes;
mod status;
mod tokens;
