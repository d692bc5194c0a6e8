//! What is PostgreSQL's own.

pub mod call;
pub mod json;
pub mod recovery;
pub mod settings;
pub mod shared_memory;
pub mod slot;
