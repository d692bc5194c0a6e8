//! Runs clients/rust/lease.rs as main.py runs the package of Python.
#[allow(dead_code)] // it uses no RELEASE
#[path = "../../../clients/rust/lease.rs"]
mod lease;

use std::io::{Read, Write, stdin, stdout};
use std::process::{Command, exit};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use lease::{Failure, Ids, Lessor, Row, Window};

fn row(fields: &[&str]) -> Row {
    let n: Vec<i64> = fields.iter().map(|field| field.parse().unwrap_or(0)).collect();
    Row {
        reason: Some(fields[0].to_string()).filter(|reason| !reason.is_empty()),
        wait: n[1],
        token: n[2],
        worker: n[3],
        tick_from: n[4],
        tick_until: n[5],
        shift: n[6] as i32,
        low: n[7],
        step: n[8] as i32,
        count: n[9],
        epoch: n[10],
        tick: n[11],
        now: n[12],
        until: n[13],
    }
}

fn vectors() {
    let mut window = Window::default();
    for line in stdin().lines() {
        let line = line.unwrap();
        let f: Vec<&str> = line.split(',').collect();
        let number = |n: usize| f[n].parse::<i64>().unwrap();
        let result = match f[0] {
            "window" => {
                window = Window::default();
                None
            }
            "answered" => {
                let _ = window.answered(row(&f[4..]), number(1), number(2), number(3));
                None
            }
            "failed" => {
                window.failed(number(1), number(2));
                None
            }
            "id" => Some(window.id(number(1), || number(2)).map_or(String::new(), |id| id.to_string())),
            "release" => {
                let text = |number: Option<i64>| number.map_or(String::new(), |number| number.to_string());
                let (token, last) = window.release();
                println!("release,{},{}", text(token), text(last));
                continue;
            }
            _ => Some(match (window.asks(number(1), number(2)), window.token) {
                (false, _) => String::new(),
                (true, None) => String::from("new"),
                (true, Some(token)) => token.to_string(),
            }),
        };
        println!("{}", result.map_or(line.clone(), |result| format!("{},{},{},{result}", f[0], f[1], f[2])));
    }
}

/// A database that is none.
struct Fake<L>(L);

impl<L: FnMut(&str, Option<i64>) -> Result<Row, Failure> + Send + 'static> Lessor for Fake<L> {
    fn lease(&mut self, layout: &str, token: Option<i64>) -> Result<Row, Failure> {
        (self.0)(layout, token)
    }

    fn release(&mut self, _: &str, _: i64, _: Option<i64>) -> Result<(), Failure> {
        Ok(())
    }
}

fn timed() {
    let now = lease::wall();
    let row = Row {
        token: 1,
        worker: 1,
        tick_from: now / 1000,
        tick_until: now,
        shift: 22,
        low: 1 << 21,
        count: 1 << 21,
        tick: 1000,
        now,
        until: now + 10_000_000_000,
        ..Row::default()
    };
    // The server's clock advances.
    let later = move |_: &str, _: Option<i64>| Ok(Row { now: lease::wall(), ..row.clone() });
    let ids = Ids::new("fake", Duration::from_secs(5), Fake(later));
    let mut best = u128::MAX;
    for _ in 0..500 {
        let began = Instant::now();
        for _ in 0..10_000 {
            ids.next().unwrap();
        }
        best = best.min(began.elapsed().as_nanos() / 10_000);
    }
    println!("{best}");
}

fn say(lines: &str) {
    let mut output = stdout().lock();
    output.write_all(lines.as_bytes()).and_then(|()| output.flush()).unwrap_or_else(|_| exit(0));
}

fn failure(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure { refused: false, cause: cause.into() }
}

fn asked(layout: &str, token: Option<i64>) -> Result<Row, Failure> {
    let token = token.map_or_else(|| String::from("NULL"), |token| token.to_string());
    let query = lease::LEASE.replace("$1, $2", &format!("'{layout}', {token}::bigint")).replace("protocol, ", "");
    let done = Command::new("psql").args(["-XAtqc", &query]).output().map_err(failure)?;
    if !done.status.success() {
        return Err(failure(String::from_utf8_lossy(&done.stderr)));
    }
    let answer = String::from_utf8(done.stdout).map_err(failure)?;
    let row = row(&answer.trim().split('|').collect::<Vec<_>>());
    if row.reason.is_none() {
        say(&format!("window {} {} {} {}\n", row.low, row.tick_from, row.tick_until, row.count));
    }
    Ok(row)
}

fn load() {
    let ids = Ids::new("twitter", Duration::from_secs(5), Fake(asked));
    spawn(|| {
        let _ = stdin().read_to_end(&mut Vec::new());
        exit(0)
    });
    loop {
        let mut made = String::new();
        for _ in 0..10 {
            match ids.next() {
                Ok(id) => made += &format!("{id}\n"),
                Err(problem) => {
                    made += &format!("none {} {}\n", lease::wall(), problem.to_string().replace('\n', " "));
                    break;
                }
            }
        }
        say(&made);
        sleep(Duration::from_millis(20));
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("vectors") => vectors(),
        Some("time") => timed(),
        _ => load(),
    }
}
