//! PostgreSQL's lightweight locks, in shared memory of our own.
#![allow(unsafe_code, reason = "PostgreSQL's locks")]

use std::cell::UnsafeCell;
use std::ffi::CStr;

use pgrx::pg_sys;

use super::interrupts;

/// How often a session tries to take a lock before it sleeps. Most locks are held briefly.
const ATTEMPTS: usize = 100;
/// How many milliseconds a session sleeps between two attempts, if the lock is held for long.
const POLL: core::ffi::c_long = 1;

/// An exclusive lock.
#[repr(transparent)]
pub struct LwLock(UnsafeCell<pg_sys::LWLock>);

/// Holds the lock until it is dropped. In the meantime, nothing may raise an error of PostgreSQL.
pub struct Guard<'a>(&'a LwLock);

impl LwLock {
    /// Wait events show `name`. Since version 19 this may raise an error, because PostgreSQL keeps the name in shared memory.
    pub fn new(name: &'static CStr) -> Self {
        // SAFETY: no session uses the lock before it is in shared memory.
        unsafe {
            let mut lock = std::mem::zeroed();
            #[cfg(not(feature = "pg19"))]
            let (tranche, _) = (pg_sys::LWLockNewTrancheId(), name);
            #[cfg(feature = "pg19")]
            let tranche = pg_sys::LWLockNewTrancheId(name.as_ptr());
            pg_sys::LWLockInitialize(&mut lock, tranche);
            Self(UnsafeCell::new(lock))
        }
    }

    /// Registers the lock's name in this session.
    #[cfg(not(feature = "pg19"))]
    pub fn register(&self, name: &'static CStr) {
        // SAFETY: the lock was initialized with its tranche; the name lives as long as the library.
        unsafe { pg_sys::LWLockRegisterTranche((*self.0.get()).tranche.into(), name.as_ptr()) };
    }

    /// Since version 19, every session knows the name anyway.
    #[cfg(feature = "pg19")]
    pub fn register(&self, _name: &'static CStr) {}

    /// Takes the lock if it is free.
    pub fn try_take(&self) -> Option<Guard<'_>> {
        // SAFETY: the lock is in shared memory.
        let is_free = unsafe { pg_sys::LWLockConditionalAcquire(self.0.get(), pg_sys::LWLockMode::LW_EXCLUSIVE) };
        is_free.then(|| Guard(self))
    }

    /// Takes the lock. The process that holds it may have been stopped, so the wait can be canceled, with PostgreSQL's error. Only
    /// a session that holds another lock or exits cannot be canceled.
    pub fn take(&self) -> Guard<'_> {
        if let Some(guard) = (0..ATTEMPTS).find_map(|_| self.try_take().or_else(spin)) {
            return guard;
        }
        // SAFETY: it is a variable of this process.
        if unsafe { pg_sys::proc_exit_inprogress } {
            // SAFETY: the lock is in shared memory.
            unsafe { pg_sys::LWLockAcquire(self.0.get(), pg_sys::LWLockMode::LW_EXCLUSIVE) };
            return Guard(self);
        }
        loop {
            interrupts::sleep(POLL, pg_sys::PG_WAIT_EXTENSION);
            if let Some(guard) = self.try_take() {
                return guard;
            }
        }
    }
}

fn spin<T>() -> Option<T> {
    std::hint::spin_loop();
    None
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: this session holds the lock.
        unsafe { pg_sys::LWLockRelease(self.0.0.get()) }
    }
}
