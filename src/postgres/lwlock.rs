//! PostgreSQL's lightweight locks, in shared memory of our own.
#![allow(unsafe_code, reason = "PostgreSQL's locks")]

use std::cell::UnsafeCell;
use std::ffi::CStr;

use pgrx::pg_sys;

use super::interrupts;

/// How often a session tries to take a lock before it sleeps. Most are held for a moment.
const ATTEMPTS: usize = 100;
/// How long a session sleeps between two attempts to take a lock that may be held for long, in milliseconds.
const POLL: core::ffi::c_long = 1;

/// An exclusive lock.
#[repr(transparent)]
pub struct LwLock(UnsafeCell<pg_sys::LWLock>);

/// The right that the lock gives, until it is dropped. Nothing may raise an error of PostgreSQL meanwhile.
pub struct Guard<'a>(&'a LwLock);

impl LwLock {
    /// `name` is what wait events show. It may raise an error of PostgreSQL since version 19, which keeps the name in shared memory.
    pub fn new(name: &'static CStr) -> Self {
        // SAFETY: nobody uses the lock before it lies in shared memory.
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

    /// Gives the lock its name in this session.
    #[cfg(not(feature = "pg19"))]
    pub fn register(&self, name: &'static CStr) {
        // SAFETY: the lock was initialized with its tranche; the name lives as long as the library.
        unsafe { pg_sys::LWLockRegisterTranche((*self.0.get()).tranche.into(), name.as_ptr()) };
    }

    /// Since version 19, every session knows the name.
    #[cfg(feature = "pg19")]
    pub fn register(&self, _name: &'static CStr) {}

    /// Takes the lock if it is free.
    pub fn try_take(&self) -> Option<Guard<'_>> {
        // SAFETY: the lock is in shared memory.
        let is_free = unsafe { pg_sys::LWLockConditionalAcquire(self.0.get(), pg_sys::LWLockMode::LW_EXCLUSIVE) };
        is_free.then(|| Guard(self))
    }

    /// Takes the lock, and raises PostgreSQL's error if the statement is canceled meanwhile: the process that holds the
    /// lock may have been stopped. A session that holds another lock, or exits, cannot be canceled.
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
