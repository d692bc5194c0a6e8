//! Runs examples/lease/lease.rs as main.py runs lease.py.
#[path = "../../../examples/lease/lease.rs"]
mod lease;

use std::io::{Read, Write, stdin, stdout};
use std::process::{Command, exit};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use lease::{Ids, Row, Window};

fn row<'a>(fields: impl Iterator<Item = &'a str>) -> Row {
    let n: Vec<i64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
    Row {
        worker: n[0] as i32,
        tick_from: n[1],
        tick_until: n[2],
        shift: n[3] as i32,
        low: n[4],
        count: n[5] as i32,
        epoch: n[6],
        tick: n[7],
        now: n[8],
        until: n[9],
        wait: n[10],
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
                let _ = window.answered(row(f[4..].iter().copied()), number(1), number(2), number(3));
                None
            }
            "failed" => {
                window.failed(number(1));
                None
            }
            "id" => Some(window.id(number(1), || number(2)).map_or(String::new(), |id| id.to_string())),
            _ => Some(match window.asks(number(1), number(2)) {
                None => String::new(),
                Some(None) => String::from("new"),
                Some(Some((worker, until))) => format!("{worker} {until}"),
            }),
        };
        println!("{}", result.map_or(line.clone(), |result| format!("{},{},{},{result}", f[0], f[1], f[2])));
    }
}

fn timed() {
    let now = lease::wall();
    let row = Row {
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
    let ids = Ids::new("fake", Duration::from_secs(5), move |_, _, _| Ok(row));
    let mut best = u128::MAX;
    for _ in 0..1000 {
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

fn load() {
    let ids = Ids::new("twitter", Duration::from_secs(5), |layout, worker, until| {
        let null = || String::from("NULL");
        let worker = worker.map_or_else(null, |worker| worker.to_string());
        let until = until.map_or_else(null, |until| until.to_string());
        let query = lease::QUERY.replace("$1, $2, $3", &format!("'{layout}', {worker}, {until}"));
        let done = Command::new("psql").args(["-XAtqc", &query]).output()?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into());
        }
        let row = row(String::from_utf8(done.stdout)?.trim().split('|'));
        if row.wait == 0 {
            say(&format!("window {} {} {}\n", row.worker, row.tick_from, row.tick_until));
        }
        Ok(row)
    });
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
                    made += &format!("none {} {}\n", lease::wall(), problem.replace('\n', " "));
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
