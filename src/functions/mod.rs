//! The SQL functions for bigint IDs and layouts, one file for each theme.

mod admin;
mod batch;
pub mod check;
pub mod convert_table;
mod custom_layouts;
mod decode;
mod during;
pub mod filter;
mod key_ranges;
mod keys;
mod layout_uses;
mod layouts_view;
mod next;
mod node;
mod seal;
mod stat_view;
pub mod statements;
mod stored;
mod take;
mod text;
mod time;
mod watermark;

use pgrx::PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED;

use crate::error::Error;

/// Returns the error of a function that needs all of its arguments.
pub fn null_argument(name: &str, why: &str) -> Error {
    Error::of(ERRCODE_NULL_VALUE_NOT_ALLOWED, format!("argument \"{name}\" must not be null")).detail(why)
}
