//! This session: its generators, and how it waits.

pub mod delays;
pub mod generators;
pub mod tick_clock;
pub mod wait;
