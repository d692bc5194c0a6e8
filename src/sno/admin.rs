//! sno_start_above and sno_cover.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use super::datum::SnoDatum;
use crate::error::{OrRaise, superuser_only};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::timestamptz::from_instant;
use crate::session;

#[pg_extern(sql = "")]
fn sno_start_above(id: SnoDatum, force: bool) -> TimestampWithTimeZone {
    superuser_only("sno_start_above").or_raise();
    from_instant(session::start_above(c"sno_start_above()", id.0.end(), force).or_raise())
}

#[pg_extern(sql = "")]
fn sno_cover(id: SnoDatum) -> SnoDatum {
    session::cover(c"sno_cover()", String::from_utf8_lossy(&id.0.encode()), id.0.instant()..id.0.end()).or_raise();
    id
}

c_symbol!(sno_start_above, sno_cover);
