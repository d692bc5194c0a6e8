//! The transactions of this session: with the first ID of each, horizons are held, until its end.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ptr::fn_addr_eq;

use crate::postgres::transaction;
use crate::{clock, ledger};

/// Nearer instants are waited for at once, in microseconds.
const SOON: i64 = 50;
/// As many readings of the clock take longer.
const READINGS: usize = 5000;

/// The hooks at the end of a transaction.
type Acts = RefCell<Vec<fn()>>;

thread_local! {
    /// It is never dropped, as the generators are not.
    static AT_END: ManuallyDrop<Acts> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Has `act` called at the end of each transaction that has made IDs, from now on. It must neither raise an error nor panic.
pub fn at_end(act: fn()) {
    AT_END.with(|all| {
        let mut all = all.borrow_mut();
        if !all.iter().any(|&known| fn_addr_eq(known, act)) {
            all.push(act);
        }
    });
}

/// Has the ends of this session's transactions noticed.
pub fn subscribe() {
    transaction::subscribe(|event| {
        if ledger::end_transaction(event) {
            AT_END.with(|all| all.borrow().iter().for_each(|act| act()));
        }
    });
}

/// Reads the clock, and says whether IDs of ticks that end after that may be made in the present transaction, or else the
/// instant to wait for.
pub fn admit() -> (i64, Result<(), i64>) {
    let mut readings = 0;
    loop {
        let now = clock::now();
        match ledger::admit(now) {
            // Somebody has announced the clock meanwhile.
            Err(until) if until.saturating_sub(now) < SOON && readings < READINGS => readings += 1,
            admitted => return (now, admitted),
        }
    }
}
