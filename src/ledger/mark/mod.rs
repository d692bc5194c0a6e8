//! Where marks are kept: in a file of the server, and in a page of each database.

pub mod file;
pub mod page;
