//! Runs clients/rust/ids.rs as main.py runs the package of Python. `fork` forks, and prints the IDs of the parent and what its child
//! got.
#[allow(dead_code)] // it uses no iterator
#[path = "../../../clients/rust/ids.rs"]
mod ids;
#[path = "../../../examples/ids/source.rs"]
mod source;

use std::env::{self, VarError};
use std::io::{Write, stdin, stdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ids::{Error, Failure, Ids, Options, Source};
use source::Own;

static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Keeps the SQLSTATE for the output, and measures.
struct Measured(Own);

impl Source for Measured {
    fn batch(&mut self, layout: &str, count: i32) -> Result<Vec<i64>, Failure> {
        let began = Instant::now();
        let answer = self.0.batch(layout, count);
        LONGEST.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        answer.map_err(|Failure { sqlstate, cause }| {
            let text = format!("{} {cause}", sqlstate.as_deref().unwrap_or("-"));
            Failure { sqlstate, cause: text.into() }
        })
    }

    fn rest(&mut self) {
        self.0.rest();
    }
}

fn ids() -> Ids {
    let seconds = |name, default: &str| match env::var(name).as_deref().or(Ok::<&str, VarError>(default)).unwrap() {
        "" => None,
        text => Some(Duration::from_secs_f64(text.parse().unwrap())),
    };
    let options = Options {
        max_age: seconds("MAX_AGE", "1"),
        most: env::var("MOST").map_or(10_000, |most| most.parse().unwrap()),
        patience: seconds("PATIENCE", "5").unwrap(),
    };
    Ids::new("twitter", Measured(Own::new(&env::var("DATABASE_URL").unwrap()).unwrap()), options)
}

struct Fake;

impl Source for Fake {
    fn batch(&mut self, _: &str, count: i32) -> Result<Vec<i64>, Failure> {
        Ok((0..i64::from(count)).collect())
    }
}

fn timed() {
    let ids = Ids::new(
        "fake",
        Fake,
        Options { max_age: Some(Duration::from_secs(3600)), most: 1_000_000, ..Options::default() },
    );
    ids.take(1_000_000).unwrap();
    let mut best = u128::MAX;
    for _ in 0..1000 {
        ids.next().unwrap();
        let began = Instant::now();
        for _ in 0..1000 {
            ids.next().unwrap();
        }
        best = best.min(began.elapsed().as_nanos() / 1000);
    }
    println!("{best}");
}

fn many() {
    let ids = ids();
    scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                let made: String = (0..125_000).map(|_| format!("{}\n", ids.next().unwrap())).collect();
                stdout().write_all(made.as_bytes()).unwrap();
            });
        }
    });
}

fn fork() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    }
    let ids = ids();
    ids.take(1000).unwrap();
    println!("{}", ids.next().unwrap());
    stdout().flush().unwrap();
    // SAFETY: the child only prints, and exits.
    let child = unsafe { fork() };
    println!("{} {}", if child == 0 { "child" } else { "parent" }, said(ids.next().map(|id| id.to_string())));
    if child == 0 {
        std::process::exit(0);
    }
    // SAFETY: no status is wanted.
    unsafe { waitpid(child, std::ptr::null_mut(), 0) };
}

fn said(result: Result<String, Error>) -> String {
    result.unwrap_or_else(|problem| {
        let (kind, cause) = match &problem {
            Error::Unavailable(cause) => ("Unavailable", cause.to_string()),
            Error::Refused(cause) => ("Refused", cause.to_string()),
            Error::Closed => ("Closed", String::new()),
            Error::Forked => ("Forked", String::new()),
        };
        let state = cause.split(' ').next().filter(|state| state.len() == 5);
        format!("error {kind} {}", state.unwrap_or("-"))
    })
}

fn act(ids: &Ids, command: &str, count: usize, pause: u64) -> Result<String, Error> {
    match command {
        "longest" => return Ok(format!("longest {}\n", LONGEST.load(Ordering::Relaxed))),
        "close" => ids.close(),
        "try" => return Ok(ids.try_next().map_or("none\n".into(), |id| format!("{id}\n"))),
        "take" => return Ok(ids.take(count)?.iter().map(|id| format!("{id}\n")).collect()),
        _ => {
            for _ in 0..count {
                let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
                println!("{} {before}", ids.next()?);
                sleep(Duration::from_millis(pause));
            }
        }
    }
    Ok(String::new())
}

fn talk() {
    let ids = ids();
    for line in stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let number = |n: usize| words.get(n).map_or(0, |word| word.parse().unwrap());
        let result = act(&ids, words[0], number(1), number(2) as u64).map_err(|problem| said(Err(problem)));
        print!("{}", result.unwrap_or_else(|error| error + "\n"));
        println!("done");
    }
}

fn main() {
    match env::args().nth(1).as_deref() {
        Some("time") => timed(),
        Some("many") => many(),
        Some("fork") => fork(),
        _ => talk(),
    }
}
