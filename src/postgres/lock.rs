//! Exclusive locks in shared memory, each with the memory that it guards.
//!
//! The process that holds a lock may have been stopped, so a wait must be cancelable. `LWLockAcquire` is not. So this is the
//! mutex that is known from futexes, a word of three states, with PostgreSQL's condition variable in place of the futex.
#![allow(unsafe_code, reason = "memory that a lock guards, and PostgreSQL's condition variable")]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use pgrx::pg_sys;

use super::interrupts::{self, InterruptHoldoff};

/// How often a session tries to take a lock before it sleeps. Most locks are held briefly.
const MAX_SPINS: usize = 100;

// The states of a lock.
const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Sessions may sleep until the lock is free.
const AWAITED: u32 = 2;

/// An exclusive lock, and the value that only its holder uses.
#[repr(C)]
pub struct Lock<T> {
    state: AtomicU32,
    wait_event: u32,
    is_free: UnsafeCell<pg_sys::ConditionVariable>,
    value: UnsafeCell<T>,
}

// SAFETY: one session at a time uses the value. PostgreSQL's functions protect the condition variable.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Holds the lock until it is dropped. In the meantime, interrupts are held, and nothing may raise an error of PostgreSQL.
pub struct Guard<'a, T>(&'a Lock<T>, InterruptHoldoff);

impl<T> Lock<T> {
    /// pg_stat_activity shows `name` for sessions that wait, since version 17. This may raise an error.
    pub fn new(name: &'static CStr, value: T) -> Self {
        let lock = Self {
            state: AtomicU32::new(FREE),
            wait_event: interrupts::wait_event(name),
            // SAFETY: it consists of numbers.
            is_free: UnsafeCell::new(unsafe { std::mem::zeroed() }),
            value: UnsafeCell::new(value),
        };
        // SAFETY: no other session uses it yet. It has no pointers, so it can be moved.
        unsafe { pg_sys::ConditionVariableInit(lock.is_free.get()) };
        lock
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let taken = self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.ok().map(|_| Guard(self, InterruptHoldoff::new()))
    }

    /// Takes the lock. The wait can be canceled, with PostgreSQL's error, unless the session holds interrupts, as it does when it
    /// holds another lock or exits.
    pub fn lock(&self) -> Guard<'_, T> {
        (0..MAX_SPINS).find_map(|_| self.try_lock().or_else(spin)).unwrap_or_else(|| self.wait())
    }

    #[cold]
    fn wait(&self) -> Guard<'_, T> {
        let is_free = self.is_free.get();
        // SAFETY: the condition variable is in shared memory. The session that releases the lock after the swap wakes this one, which is
        // in the queue by then. If an error ends the sleep, PostgreSQL removes the session from the queue.
        unsafe {
            pg_sys::ConditionVariablePrepareToSleep(is_free);
            while self.state.swap(AWAITED, Ordering::AcqRel) != FREE {
                pg_sys::ConditionVariableSleep(is_free, self.wait_event);
            }
            pg_sys::ConditionVariableCancelSleep();
        }
        Guard(self, InterruptHoldoff::new())
    }
}

fn spin<T>() -> Option<T> {
    std::hint::spin_loop();
    None
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this session holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this session holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if self.0.state.swap(FREE, Ordering::AcqRel) == AWAITED {
            // All of them, because one alone may be canceled before it takes the lock.
            // SAFETY: the condition variable is in shared memory.
            unsafe { pg_sys::ConditionVariableBroadcast(self.0.is_free.get()) };
        }
    }
}
