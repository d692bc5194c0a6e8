//! The two places of marks: a file for the server, and a page for each database.

pub mod file;
pub mod page;
