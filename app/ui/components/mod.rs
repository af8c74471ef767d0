//! The pieces that pages are made of, one a file.

pub(crate) mod action;
pub(crate) mod artifacts;
pub(crate) mod attempts;
pub(crate) mod connection;
pub(crate) mod copy;
pub(crate) mod empty;
pub(crate) mod failure;
pub(crate) mod field;
pub(crate) mod filters;
pub(crate) mod flash_banner;
pub(crate) mod icon;
pub(crate) mod job_head;
pub(crate) mod job_table;
pub(crate) mod labels;
pub(crate) mod layout;
pub(crate) mod log_view;
pub(crate) mod loss_chart;
pub(crate) mod page_head;
pub(crate) mod samples;
pub(crate) mod scale;
pub(crate) mod start_steps;
pub(crate) mod status;
pub(crate) mod theme_switch;
pub(crate) mod time;
pub(crate) mod worker_connect;
pub(crate) mod worker_table;
