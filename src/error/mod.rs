//! Errors with their SQLSTATE, DETAIL and HINT, and how they are raised.

mod define;
mod obstacle;
mod privilege;
mod raise;
mod row;
mod variants;

pub use self::obstacle::Obstacle;
pub use self::privilege::{monitor_only, owner_only, superuser_only};
pub use self::raise::{OrRaise, errsave, raise, warn};
pub use self::row::listed;

pub use self::variants::Error;
