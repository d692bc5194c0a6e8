//! The two places of the mark: a file of the server, and a page of each database.

pub mod file;
pub mod page;
