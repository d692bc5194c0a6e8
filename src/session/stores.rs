//! The generators of this session, one store for each type of source, and the callbacks at the end of transactions and of the
//! session.
#![allow(unsafe_code, reason = "registers a callback")]

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::thread::LocalKey;

use flake_core::{IdSource, SnoSource};
use pgrx::{pg_guard, pg_sys};

use super::generator_map::GeneratorMap;
use super::generators::SessionGenerator;
use super::layout_source::LayoutSource;
use crate::error::{Error, OrRaise};
use crate::ledger::{self, Backend};
use crate::postgres::memory;
use crate::postgres::recovery;
use crate::postgres::transaction::{self, Event};

/// The generators of this session for sources of one type. They are never dropped: if a backend ends by libc's exit(), destructors
/// run before PostgreSQL's callbacks, which still need the generators.
pub struct Store<S: IdSource> {
    /// The SQL function that makes IDs, for error messages.
    function: &'static CStr,
    generators: ManuallyDrop<RefCell<GeneratorMap<SessionGenerator<S>>>>,
}

/// Where a store is.
pub type StoreKey<S> = &'static LocalKey<Store<S>>;

thread_local! {
    pub static LAYOUTS: Store<LayoutSource> = const { Store::new(c"flake_next()") };
    pub static SNOS: Store<SnoSource> = const { Store::new(c"sno_next()") };
    static LEAVES_AT_EXIT: Cell<bool> = const { Cell::new(false) };
}

impl<S: IdSource> Store<S> {
    const fn new(function: &'static CStr) -> Self {
        Self { function, generators: ManuallyDrop::new(RefCell::new(GeneratorMap::new())) }
    }

    /// Makes the hot generators read the clock before their next ID. The others read it anyway when they become hot.
    fn forget_readings(&self) {
        if let Ok(mut generators) = self.generators.try_borrow_mut() {
            generators.hot_mut().for_each(SessionGenerator::forget_reading);
        }
    }

    /// Makes all generators look at the page before their next ID.
    fn invalidate_pages(&self) {
        if let Ok(mut generators) = self.generators.try_borrow_mut() {
            generators.all_mut().for_each(SessionGenerator::invalidate_page);
        }
    }

    /// Reports how many IDs the generators have made, at exit.
    fn report(&self) {
        if let Ok(mut generators) = self.generators.try_borrow_mut() {
            generators.all_mut().for_each(SessionGenerator::report);
        }
    }
}

/// Calls `act` with this session's generator for a source, which is created if it does not exist.
pub fn with_generator<S: IdSource, R>(
    store: StoreKey<S>,
    source: S,
    act: impl FnOnce(&mut SessionGenerator<S>) -> R,
) -> R {
    store.with(|Store { function, generators }| {
        recovery::refuse(function);
        let key = source.key();
        if !generators.borrow().contains(key) {
            // No generator is borrowed here, because the session may exit while it waits for a lock.
            let new = SessionGenerator::new(source, join).or_raise();
            let inserted = generators.borrow_mut().insert(key, new);
            memory::granted(inserted);
        }
        let mut generators = generators.borrow_mut();
        let Some(own) = generators.heat(key) else { unreachable!("it has just been created") };
        own.go_on_for(source).or_raise();
        act(own)
    })
}

/// Calls `act` with the generator of the wanted source, if it is hot and not in use.
#[inline]
pub fn find<S: IdSource, R>(
    store: StoreKey<S>,
    is_wanted: impl Fn(&S) -> bool,
    act: impl FnOnce(&mut SessionGenerator<S>) -> Option<R>,
) -> Option<R> {
    store.with(|store| {
        let mut generators = store.generators.try_borrow_mut().ok()?;
        act(generators.hot_mut().find(|own| is_wanted(own.source()))?)
    })
}

/// Calls `act` with each of this session's generators for sources of one type.
pub fn each<S: IdSource, R>(store: StoreKey<S>, act: impl FnMut(&SessionGenerator<S>) -> R) -> Vec<R> {
    store.with(|store| store.generators.borrow().all().map(act).collect())
}

/// Makes the generators forget at the end of each transaction from now on what counts in that transaction only: their readings of the
/// clock, and what they know of the page if something is rolled back.
pub fn subscribe() {
    transaction::subscribe(|event| {
        if ledger::end_transaction(event) {
            forget_readings();
        }
        if matches!(event, Event::Left | Event::LeftInPart) {
            LAYOUTS.with(Store::invalidate_pages);
            SNOS.with(Store::invalidate_pages);
        }
    });
}

/// Makes all generators of this session read the clock and check the era before their next ID.
pub fn forget_readings() {
    LAYOUTS.with(Store::forget_readings);
    SNOS.with(Store::forget_readings);
}

/// Makes this session a user of the ledger, until it exits.
pub fn join() -> Result<Backend, Error> {
    #[pg_guard]
    unsafe extern "C-unwind" fn at_exit(_code: i32, _argument: pg_sys::Datum) {
        // The cursors of their lanes say how far the generators got; here they only report their counts.
        LAYOUTS.with(Store::report);
        SNOS.with(Store::report);
        ledger::leave();
    }
    let own = ledger::join()?;
    if !LEAVES_AT_EXIT.replace(true) {
        // SAFETY: the callback lives as long as the library, which PostgreSQL never unloads.
        unsafe { pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(0)) };
    }
    Ok(own)
}
