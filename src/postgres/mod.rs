//! PostgreSQL's interfaces: calls and their arguments, plans, types, shared memory, settings. Nothing here knows of layouts.

pub mod background;
pub mod backtrace;
pub mod call;
pub mod encoding;
pub mod entry_point;
pub mod expressions;
pub mod extension;
pub mod interrupts;
pub mod interval;
pub mod json;
pub mod lwlock;
pub mod prepared;
pub mod range_condition;
pub mod ranges;
pub mod recovery;
pub mod report;
pub mod role;
pub mod rows;
pub mod sequence_page;
pub mod server_setting;
pub mod shared_memory;
pub mod slot;
pub mod snapshot;
pub mod stall;
pub mod timestamptz;
pub mod transaction;
