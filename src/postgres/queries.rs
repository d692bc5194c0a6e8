//! Runs queries that each take a new snapshot, so that a query sees what earlier queries have written and what others have
//! committed. pgrx's interface reads with the calling query's snapshot unless the transaction has an ID.
//!
//! Plans are kept by the text of the query, for all parameters. PostgreSQL plans again if an object that the text depends on has
//! changed.
#![allow(unsafe_code, reason = "PostgreSQL's server programming interface")]

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_int, c_long};
use std::mem::ManuallyDrop;
use std::ptr;

use pgrx::{FromDatum, PgList, pg_sys};

use super::memory::{collect_or_raise, granted};

/// How many rows are fetched at a time.
const CHUNK: c_long = 1000;
/// The same for rows that can be long.
const SMALL_CHUNK: c_long = 10;

/// How many plans a session keeps, each about 20 kB. They are never freed, because they could be in use.
const MAX_PLANS: usize = 200;

/// Plans by their query and the types of the parameters.
type Plans = HashMap<(CString, Vec<pg_sys::Oid>), pg_sys::SPIPlanPtr>;

thread_local! {
    /// Plans by their query and the types of the parameters, which the text does not contain. It is never dropped, because libc would
    /// end the process if it could not register the destructor.
    static PLANS: ManuallyDrop<RefCell<Plans>> = ManuallyDrop::default();
}

/// A parameter of a query: its type and its value.
pub type Parameter = (pg_sys::Oid, pg_sys::Datum);

/// A row; NULL is None.
pub type Row<const N: usize> = [Option<pg_sys::Datum>; N];

/// A connection to the interface. After an error, PostgreSQL closes it.
pub struct Queries(());

impl Queries {
    /// Calls `act` with a connection. Nothing that a query returns lives longer than the connection.
    pub fn run<R>(act: impl FnOnce(&Self) -> R) -> R {
        // SAFETY: the connection is closed unless an error leaves from `act`.
        unsafe { pg_sys::SPI_connect() };
        let result = act(&Self(()));
        // SAFETY: as above.
        unsafe { pg_sys::SPI_finish() };
        result
    }

    /// Returns the rows of a query with N columns or none, and the number of rows that it returned, changed or locked.
    pub fn execute<const N: usize>(&self, query: &CStr, parameters: &[Parameter]) -> (Vec<Row<N>>, u64) {
        let (types, mut values): (Vec<_>, Vec<_>) = parameters.iter().copied().unzip();
        // SAFETY: there are as many values as parameters, and they are not NULL. A failure raises an error.
        unsafe {
            pg_sys::SPI_execute_plan(self.plan(query, types), values.as_mut_ptr(), ptr::null(), false, 0);
            (rows(), pg_sys::SPI_processed)
        }
    }

    /// Calls `act` with each row of a query with N columns. A row, and all that it points to, lives as long as the call.
    pub fn each<const N: usize>(&self, query: &CStr, parameters: &[Parameter], mut act: impl FnMut(&Row<N>)) {
        self.fetch(query, parameters, SMALL_CHUNK, |_| true, |rows, _| rows.iter().for_each(&mut act));
    }

    /// Calls a function with the rows of a query with N columns, and with their types; the rows live as long as the call.
    /// `may_read` is called with the relations of the plan when the query has its snapshot; if it returns false, so does this,
    /// without reading rows.
    pub fn for_each<const N: usize>(
        &self,
        query: &CStr,
        parameters: &[Parameter],
        may_read: impl FnOnce(&HashSet<pg_sys::Oid>) -> bool,
        act: impl FnMut(&[Row<N>], [pg_sys::Oid; N]),
    ) -> bool {
        self.fetch(query, parameters, CHUNK, may_read, act)
    }

    fn fetch<const N: usize>(
        &self,
        query: &CStr,
        parameters: &[Parameter],
        chunk: c_long,
        may_read: impl FnOnce(&HashSet<pg_sys::Oid>) -> bool,
        mut act: impl FnMut(&[Row<N>], [pg_sys::Oid; N]),
    ) -> bool {
        let (types, mut values): (Vec<_>, Vec<_>) = parameters.iter().copied().unzip();
        let (name, nulls) = (ptr::null(), ptr::null());
        // SAFETY: as in `execute`. A cursor has a table of rows, if only of none, until it is freed.
        unsafe {
            let cursor = pg_sys::SPI_cursor_open(name, self.plan(query, types), values.as_mut_ptr(), nulls, false);
            let plans = PgList::<pg_sys::PlannedStmt>::from_pg((*cursor).stmts);
            let mut relations = HashSet::new();
            for of in plans.iter_ptr().map(|plan| PgList::<()>::from_pg((*plan).relationOids)) {
                granted(relations.try_reserve(of.len()));
                relations.extend(of.iter_oid());
            }
            let may_read = may_read(&relations);
            let mut is_more = may_read;
            while is_more {
                pg_sys::SPI_cursor_fetch(cursor, true, chunk);
                let (rows, table) = (rows(), pg_sys::SPI_tuptable);
                if !rows.is_empty() {
                    let column_type = |column| pg_sys::SPI_gettypeid((*table).tupdesc, column as c_int + 1);
                    act(&rows, std::array::from_fn(column_type));
                }
                pg_sys::SPI_freetuptable(table);
                is_more = rows.len() == chunk as usize;
            }
            pg_sys::SPI_cursor_close(cursor);
            may_read
        }
    }

    /// Returns the plan of a query, and keeps it unless there are too many.
    fn plan(&self, query: &CStr, mut types: Vec<pg_sys::Oid>) -> pg_sys::SPIPlanPtr {
        let key = (query.to_owned(), types.clone());
        if let Some(plan) = PLANS.with(|kept| kept.borrow().get(&key).copied()) {
            return plan;
        }
        // SAFETY: there is a connection, and the number of types is right. A failure raises an error.
        let plan = unsafe {
            let (count, options) = (types.len() as c_int, pg_sys::CURSOR_OPT_GENERIC_PLAN as c_int);
            pg_sys::SPI_prepare_cursor(query.as_ptr(), count, types.as_mut_ptr(), options)
        };
        PLANS.with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < MAX_PLANS {
                // SAFETY: the plan was just made.
                unsafe { pg_sys::SPI_keepplan(plan) };
                kept.insert(key, plan);
            }
        });
        plan
    }

    /// Copies a value, so that it lives longer than the connection.
    pub fn keep(&self, of: pg_sys::Oid, value: pg_sys::Datum) -> pg_sys::Datum {
        let (mut length, mut is_by_value) = (0, false);
        // SAFETY: the value is of this type; there is a connection.
        unsafe {
            pg_sys::get_typlenbyval(of, &raw mut length, &raw mut is_by_value);
            pg_sys::SPI_datumTransfer(value, is_by_value, length.into())
        }
    }
}

/// Returns the bytes of a bytea or a text of a row.
///
/// # Safety The value must be one of a row that still exists.
pub unsafe fn bytes<'a>(value: Option<pg_sys::Datum>) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    unsafe { FromDatum::from_datum(value?, false) }
}

/// Returns the rows of the last query.
///
/// # Safety The query must have N columns or none.
unsafe fn rows<const N: usize>() -> Vec<Row<N>> {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(table) = pg_sys::SPI_tuptable.as_ref() else { return Vec::new() };
        let row = |row: usize| {
            std::array::from_fn(|column| {
                let mut is_null = false;
                let value =
                    pg_sys::SPI_getbinval(*table.vals.add(row), table.tupdesc, column as c_int + 1, &raw mut is_null);
                (!is_null).then_some(value)
            })
        };
        collect_or_raise((0..table.numvals as usize).map(row))
    }
}
