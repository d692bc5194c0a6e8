//! The SQL functions for bigint IDs and layouts, one file for each theme.

mod admin;
mod batch;
mod check;
mod convert_table;
mod custom_layouts;
mod decode;
mod during;
pub mod filter;
mod horizon;
mod keys;
mod layout_uses;
mod layouts_view;
mod lease;
mod next;
mod node;
mod seal;
mod stats_view;
mod take;
mod text;
mod time;
