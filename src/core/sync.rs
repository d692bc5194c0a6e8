//! Atomics and fences of the processor, or of loom, which tests every order that the memory model allows.

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence},
};
