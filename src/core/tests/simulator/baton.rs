//! Threads that take turns. One of them has the baton, and passes it on only where the story says so. So each run is deterministic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};

/// Where a thread waits for its turn.
pub struct Seat {
    thread: Thread,
    is_called: AtomicBool,
}

impl Seat {
    /// A seat for this thread.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), is_called: AtomicBool::new(false) })
    }

    pub fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.thread.unpark();
    }

    pub fn wait(&self) {
        while !self.is_called.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread without work.
struct Idle {
    seat: Arc<Seat>,
    job: Arc<Mutex<Option<Job>>>,
}

/// Threads are used again, because a new one takes ten times as long to start.
static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// Lets another thread do a job.
pub fn hand_on(job: impl FnOnce() + Send + 'static) {
    let job: Job = Box::new(job);
    let idle = IDLE.lock().unwrap().pop();
    match idle {
        Some(idle) => {
            *idle.job.lock().unwrap() = Some(job);
            idle.seat.call();
        }
        None => drop(thread::Builder::new().stack_size(1 << 20).spawn(move || work(job)).unwrap()),
    }
}

fn work(mut job: Job) {
    let (seat, next) = (Seat::new(), Arc::new(Mutex::new(None)));
    loop {
        job();
        IDLE.lock().unwrap().push(Idle { seat: Arc::clone(&seat), job: Arc::clone(&next) });
        seat.wait();
        job = next.lock().unwrap().take().unwrap();
    }
}
