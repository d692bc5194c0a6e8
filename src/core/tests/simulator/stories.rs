//! How stories are written down. Each of those in `stories_of_*.rs` once found a fault of the product or of the protocol: an ID that
//! was made twice, a server that made none, or a lost row.
//!
//! A line names a server, `a`, `b` or `c`, and its events. `make@1` is an event of the session in proc 1; proc 0 needs no number. At a
//! `!` the session stops: the story is played once for each point at which it can. `{x|y}` stands for two stories, one with `x` and one
//! with `y`. Times are in seconds unless they have a unit.

use crate::layouts::{DAY, HOUR, SECOND, SNO};
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::play::{Play, World};
use crate::story::{Act, Event, Making, Story};
use crate::tailing::MICROSECOND;
use crate::{be_quiet, told};

/// The servers.
pub const A: usize = 0;
pub const B: usize = 1;

pub type Events = Vec<(usize, Event)>;

/// Where a session stops at each point in turn.
const EACH: Option<u16> = Some(0);

/// Tests, each with a story in which nothing goes wrong.
macro_rules! stories {
    ($($(#[$meta:meta])* fn $name:ident() $text:literal)+) => {
        $($(#[$meta])* #[test] fn $name() { crate::stories::go_well($text); })+
    };
}
pub(crate) use stories;

fn seconds(text: &str) -> i64 {
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let unit = match unit {
        "" => SECOND,
        "us" => 1,
        "h" => HOUR,
        "d" => 24 * HOUR,
        _ => panic!("{text}: an unknown unit"),
    };
    (number.parse::<f64>().expect(text) * unit as f64).round() as i64
}

fn node(text: &str) -> (u32, u32) {
    let (id, count) = text.split_once('/').expect(text);
    (id.parse().unwrap(), count.parse().unwrap())
}

fn server(name: &str) -> usize {
    "abc".find(name).expect(name)
}

/// Adds an event, or several that are written as one.
fn add(events: &mut Events, at: usize, text: &str) {
    let mut words = text.split_whitespace();
    let word = words.next().unwrap();
    let (word, stop) = word.strip_suffix('!').map_or((word, None), |word| (word, EACH));
    let (word, proc) = word.split_once('@').map_or((word, 0), |(word, proc)| (word, proc.parse().unwrap()));
    let words: Vec<&str> = words.collect();
    let waits = words.last() == Some(&"waiting");
    let words = &words[..words.len() - usize::from(waits)];
    let has = |place: usize| words.get(place).copied();
    let number = |default: usize| has(0).map_or(default, |word| word.parse().expect(text));
    let time = || seconds(has(0).expect(text));
    let of_kind = |kind| Act::Make(Making { kind, count: number(1), waits });
    let act = match word {
        "make" => of_kind(0),
        "wait" => Act::Make(Making { kind: 1, count: 1, waits: true }),
        "micro" => of_kind(MICROSECOND),
        "day" => of_kind(DAY),
        "snos" => of_kind(SNO),
        "partition" => of_kind(SNO + 1),
        "go" => Act::GoOn,
        "connect" => Act::Connect(number(0)),
        "exit" => Act::Exit,
        "kill" => Act::Kill,
        "begin" => Act::Begin,
        "commit" => Act::End(true),
        "abort" => Act::End(false),
        "write" => Act::Write,
        "look" => Act::Look,
        "prepare" => Act::Prepare,
        "finish" => Act::Finish { which: 0, commits: true },
        "cover" => Act::Cover(time()),
        "recreate" => Act::Recreate,
        "accept" => Act::Accept,
        "above" => Act::StartAbove(time()),
        "ask" => Act::Ask,
        "publish" => Act::Publish,
        _ => return add_of_server(events, at, text, (word, words, waits)),
    };
    events.push((at, Event::Session(proc, act, stop)));
}

fn add_of_server(events: &mut Events, at: usize, text: &str, (word, words, waits): (&str, &[&str], bool)) {
    let has = |place: usize| words.get(place).copied();
    let number = |default: usize| has(0).map_or(default, |word| word.parse().expect(text));
    let to_used = |by| Event::ToUsed { which: number(0), by, waits };
    let event = match word {
        // Both sessions.
        "connect-all" => {
            return events.extend([0, 1].map(|proc| (at, Event::Session(proc, Act::Connect(number(0)), None))));
        }
        // The clock is set to shortly before the ID that is so many IDs before the last one, and sessions make IDs there.
        "again" => {
            events.push((at, to_used(-SECOND / 4)));
            return (0..14).for_each(|_| events.extend(read_on(at, "make, make@1, pass 0.25")));
        }
        // Both servers make most IDs of the same ticks of a quarter of a second, until this one no longer leads the clock.
        "beside" => {
            let tick = [read_on(server(words[0]), "make 6"), read_on(at, "make 6, pass 0.25")].concat();
            return (0..32).for_each(|_| events.extend(&tick));
        }
        "pass" => Event::Pass(seconds(words[0])),
        "step" => Event::Step(seconds(words[0])),
        "right" => Event::SetRight,
        "used" => to_used(0),
        "stop" => Event::Stop(Ending::InOrder),
        "crash" => Event::Stop(Ending::Crash),
        "reboot" => Event::Stop(Ending::Reboot(u64::from_str_radix(words[0], 16).unwrap())),
        "start" => Event::Start,
        "restart" => Event::Restart(has(0).map_or((0, 2), node)),
        "disk" => Event::DiskFails(words[0] == "fails"),
        "save" => Event::SaveFile,
        "restore" => Event::RestoreFile,
        "lose" => Event::LoseFile(if has(0) == Some("crashing") { Ending::Crash } else { Ending::InOrder }),
        "upgrade" => Event::Upgrade,
        "create" => Event::NewDatabase(number(0)),
        "drop" => Event::Drop(number(0)),
        "replay" => Event::Replay(number(usize::MAX)),
        "leave-out" => Event::LeaveOut(number(0) as u32),
        "promote" => Event::Promote,
        "follow" => {
            let keeps_file = has(2) == Some("keeping");
            Event::Follow { source: server(words[0]), node: has(1).map_or((0, 2), node), keeps_file }
        }
        "" => return,
        _ => panic!("there is no event {text:?}"),
    };
    events.push((at, event));
}

/// Reads events of one server.
pub fn read_on(at: usize, text: &str) -> Events {
    let mut events = Vec::new();
    text.split(',').filter(|text| !text.trim().is_empty()).for_each(|text| add(&mut events, at, text));
    events
}

/// Reads a story without alternatives. A line that names no server continues the one before.
pub fn read(text: &str) -> Events {
    let mut at = A;
    let line = |line: &str| {
        let (name, events) = line.trim().split_once(':').unwrap_or(("", line));
        if !name.is_empty() {
            at = server(name);
        }
        read_on(at, events)
    };
    text.lines().flat_map(line).collect()
}

/// Reads all stories that a text stands for.
fn read_all(text: &str) -> Vec<Events> {
    let Some((before, rest)) = text.split_once('{') else { return vec![read(text)] };
    let (choices, after) = rest.split_once('}').expect(text);
    choices.split('|').flat_map(|choice| read_all(&format!("{before}{choice}{after}"))).collect()
}

/// The events, where the sessions that stop at each point stop at these.
pub fn stopping(events: &Events, stops: &[u16]) -> Events {
    let (mut events, mut stops) = (events.clone(), stops.iter());
    for (_, event) in &mut events {
        if let Event::Session(_, _, stop) = event
            && *stop == EACH
        {
            *stop = stops.next().copied();
        }
    }
    events
}

/// Plays a story, and fails if anything goes wrong in it.
pub fn goes_well(events: Events) -> World {
    be_quiet();
    let story = Story { events, any_time: 0 };
    let world = Play::of(&story, false);
    if let Some(Failure(failure)) = &world.failure {
        panic!("{failure}\n{}", told(&story));
    }
    world
}

/// Plays all stories that a text stands for. Returns their ends.
pub fn go_well(text: &str) -> Vec<World> {
    let mut worlds = Vec::new();
    for story in read_all(text) {
        let stops = story.iter().filter(|(_, event)| matches!(event, Event::Session(_, _, EACH))).count();
        if stops == 0 {
            worlds.push(goes_well(story));
            continue;
        }
        let mut play = |at: &[u16]| {
            worlds.push(goes_well(stopping(&story, at)));
            worlds[worlds.len() - 1].stops >= at.len()
        };
        let points = (1..).take_while(|&first| match stops {
            1 => play(&[first]),
            _ => (1..).take_while(|&next| play(&[first, next])).count() > 0 || play(&[first]),
        });
        assert!(points.count() > 0, "no session was stopped");
    }
    worlds
}

/// The number of IDs that a server made before the epilogue, in which clocks are right.
pub fn made_on(world: &World, at: usize, kind: usize) -> usize {
    world.oracle.made.iter().filter(|made| made.server == at && made.kind == kind).count()
}
