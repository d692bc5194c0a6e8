//! The partitions and children of a table that a snapshot sees and a plan may lack. A commit is visible before its invalidation
//! messages are sent. If a message arrives while PostgreSQL builds its list of partitions, the list may still lack one.

use std::collections::HashSet;
use std::ffi::CStr;

use pgrx::pg_sys;

use crate::postgres::memory::granted;
use crate::postgres::queries::Queries;
use crate::postgres::relation;

/// Finds out whether a table has partitions or children. Most have none, so this query saves them the recursive one, whose hash table
/// costs more.
const HAS_ANY: &CStr = c"SELECT FROM pg_catalog.pg_inherits WHERE inhparent OPERATOR(pg_catalog.=) $1 LIMIT 1";
/// Returns each relation once, however many parents it has. OFFSET 0 makes PostgreSQL use the index of parents.
const BELOW: &CStr = c"
    WITH RECURSIVE below(oid) AS (
        SELECT $1 UNION SELECT i.inhrelid FROM below, LATERAL (
            SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent OPERATOR(pg_catalog.=) below.oid AND NOT inhdetachpending OFFSET 0
        ) i
    ) SELECT oid FROM below";

pub struct Partitions {
    table: pg_sys::Oid,
    /// Relations that the last plan lacked. If the next plan lacks them too, the query does not need their rows.
    lacked: HashSet<pg_sys::Oid>,
}

impl Partitions {
    pub fn of(table: pg_sys::Oid) -> Self {
        Self { table, lacked: HashSet::new() }
    }

    /// Returns whether a plan has all partitions. If not, the next plan has them, because the planner reads the catalog again and
    /// waits for their locks.
    pub fn are_in(&mut self, queries: &Queries, plan: &HashSet<pg_sys::Oid>) -> bool {
        let table = [(pg_sys::OIDOID, self.table.into())];
        if queries.execute::<0>(HAS_ANY, &table).1 == 0 {
            return true;
        }
        let (below, _) = queries.execute::<1>(BELOW, &table);
        granted(self.lacked.try_reserve(below.len()));
        let below = below.iter().flatten().flatten().map(|oid| pg_sys::Oid::from(oid.value() as u32));
        let are_in = below.filter(|oid| !plan.contains(oid) && self.lacked.insert(*oid)).count() == 0;
        if !are_in {
            relation::forget_all();
        }
        are_in
    }
}
