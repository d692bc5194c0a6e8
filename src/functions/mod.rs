//! What SQL calls, a file for each theme.

mod batch;
mod batch_support;
mod convert;
pub mod decode;
mod generators_view;
mod stats_view;
pub mod time;
