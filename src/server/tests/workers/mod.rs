//! Workers, as administrators see them.

mod forms;
mod history;
mod routes;
mod tokens;
