//! Threads that play one after the other: one of them has the baton, and it changes hands only where the story says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};

/// Where a thread waits until it is called.
pub struct Seat {
    thread: Thread,
    is_called: AtomicBool,
}

impl Seat {
    /// The seat of this thread.
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

/// New threads take ten times as long as those that wait here.
static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// Has another thread do this.
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
