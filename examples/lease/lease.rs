//! IDs of flake that this process makes itself, on a worker number that the database leases to it. docs/how-to/applications.md says
//! when to use it. After fork(), a child makes an `Ids` of its own: two copies of this one would make the same IDs.
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where `wait` is not 0, the other columns are NULL, and 0 here.
pub const QUERY: &str = "SELECT worker, tick_from, tick_until, shift, low, count, epoch, tick, now, until, wait FROM flake_lease($1, $2, $3)";
#[derive(Clone, Copy, Default)]
#[rustfmt::skip]
pub struct Row { pub worker: i32, pub tick_from: i64, pub tick_until: i64, pub shift: i32, pub low: i64, pub count: i32,
    pub epoch: i64, pub tick: i64, pub now: i64, pub until: i64, pub wait: i64 }

const SECOND: i64 = 1_000_000;
/// The worker and the end of a window that is to be continued; None asks for another worker.
pub type Ask = Option<(i32, i64)>;

/// What the server has granted, and how much of it is used. Instants are microseconds of the steady clock and of the wall clock.
#[derive(Default)]
pub struct Window {
    row: Option<Row>,
    came: i64,
    wall: i64,
    ask: Ask,
    due: i64,
    last: (i64, i32),
}

impl Window {
    /// The next ID, or None if there is none now.
    #[inline]
    pub fn id(&mut self, steady: i64, wall: impl Fn() -> i64) -> Option<i64> {
        let row = self.row?;
        // The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
        let tick = (row.now + steady - self.came - row.epoch).div_euclid(row.tick).max(self.last.0);
        if tick > self.last.0 && self.parted(steady, wall()) {
            return None;
        }
        let n = if tick > self.last.0 { 0 } else { self.last.1 + 1 };
        let id = tick << row.shift | row.low + i64::from(n);
        // Whatever happened meanwhile, an ID of this window belongs to nobody else.
        let of = (id as u64 >> row.shift) as i64;
        if n >= row.count || of < row.tick_from || of >= row.tick_until {
            return None;
        }
        self.last = (tick, n);
        Some(id)
    }

    /// Whether the lease is to be renewed now, and how.
    pub fn asks(&mut self, steady: i64, wall: i64) -> Option<Ask> {
        self.parted(steady, wall);
        (steady >= self.due).then_some(self.ask)
    }

    /// Returns the reason if the answer grants no lease.
    pub fn answered(&mut self, row: Row, sent: i64, came: i64, wall: i64) -> Result<(), String> {
        if row.wait > 0 {
            self.due = came + row.wait.min(5 * SECOND);
            return Err(format!("the database grants none for {} s", row.wait as f64 / 1e6));
        }
        // The process may have stood still: what the answer says of the clock is old.
        if came - sent > 2 * SECOND {
            self.failed(came);
            return Err("the answer took more than 2 s".into());
        }
        let continued = self.row.filter(|old| old.worker == row.worker && old.tick_until == row.tick_from);
        self.row = Some(Row { tick_from: continued.map_or(row.tick_from, |old| old.tick_from), ..row });
        // The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
        if row.tick_until <= self.last.0 {
            self.last = (0, 0);
        }
        (self.came, self.wall, self.ask) = (came, wall, Some((row.worker, row.until)));
        self.due = sent + (5 * SECOND).min((row.until - row.now) / 2);
        Ok(())
    }

    /// An answer that was lost may have been a renewal, which nobody can continue then.
    pub fn failed(&mut self, steady: i64) {
        (self.ask, self.due) = (None, steady + SECOND);
    }

    /// Whether the machine was suspended since the answer, or a clock was set.
    fn parted(&mut self, steady: i64, wall: i64) -> bool {
        let parted = self.row.is_some() && ((wall - self.wall) - (steady - self.came)).abs() > SECOND;
        if parted {
            (self.row, self.ask, self.due) = (None, None, steady);
        }
        parted
    }
}

pub fn wall() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as i64
}

/// For all threads of a process. `next` waits for a lease up to `patience`.
pub struct Ids {
    shared: Arc<Mutex<(Window, String)>>,
    start: Instant,
    patience: Duration,
}

impl Ids {
    pub fn new<L>(layout: &'static str, patience: Duration, mut lease: L) -> Ids
    where
        L: FnMut(&str, Option<i32>, Option<i64>) -> Result<Row, Box<dyn Error>> + Send + 'static,
    {
        let (shared, start) = (Arc::new(Mutex::new((Window::default(), String::from("no answer")))), Instant::now());
        let (weak, steady) = (Arc::downgrade(&shared), move || start.elapsed().as_micros() as i64);
        spawn(move || {
            while let Some(shared) = weak.upgrade() {
                let asks = shared.lock().unwrap().0.asks(steady(), wall());
                if let Some(ask) = asks {
                    let sent = steady();
                    let answer = lease(layout, ask.map(|(worker, _)| worker), ask.map(|(_, until)| until));
                    let came = steady();
                    let (window, problem) = &mut *shared.lock().unwrap();
                    *problem = match answer {
                        // A renewal of a window that was given up begins when that one ends.
                        Ok(_) if ask != window.ask => "a clock was set".into(),
                        Ok(row) => window.answered(row, sent, came, wall()).err().unwrap_or_default(),
                        Err(error) => {
                            window.failed(came);
                            error.to_string()
                        }
                    };
                }
                drop(shared);
                sleep(Duration::from_millis(50));
            }
        });
        Ids { shared, start, patience }
    }

    pub fn next(&self) -> Result<i64, String> {
        let mut began = None;
        loop {
            if let Some(id) = self.shared.lock().unwrap().0.id(self.start.elapsed().as_micros() as i64, wall) {
                return Ok(id);
            }
            if began.get_or_insert_with(Instant::now).elapsed() > self.patience {
                return Err(format!("no lease of a worker number: {}", self.shared.lock().unwrap().1));
            }
            sleep(Duration::from_millis(1));
        }
    }
}
