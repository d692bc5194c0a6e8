//! Errors: what they are, their SQLSTATE, DETAIL and HINT, and how they are raised.

mod raise;
mod table;
mod variants;

pub use self::raise::{OrRaise, errsave, raise};
pub use self::table::row;
pub use self::variants::Error;
