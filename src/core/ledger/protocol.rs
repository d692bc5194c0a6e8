//! The protocol: in which order a session reads, decides and writes, so that no ID is made twice.
//!
//! 1. Time is in the file, then in the page of the session's database, before anybody makes an ID in it.
//! 2. A page's content is taken in before it is written, and is in the file before the page is written in this start's name.
//! 3. A session that writes the file or a page writes the union of what is there and what it knows.

use std::sync::atomic::{Ordering, fence};

use super::host::{Change, Fault, Host, Page, Server, State, Writer};
use super::bound::Bound;
use super::marks::Marks;
use super::record::{newest, note, store};
use super::slot::{FinalProgress, Start};
use super::state::{AHEAD, Facts, Ledger};
use super::used::Used;
use super::window::Window;

/// When less than this remains of the time that was granted, one session asks for more while the others go on. In microseconds.
const RESERVE: i64 = 1_000_000;

/// The beginning of a generator.
#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    /// The first unused tick, or the progress to resume from.
    pub start: Start,
    /// The latest present instant that earlier sessions have seen.
    pub last_seen: i64,
    /// The era in which this holds.
    pub era: u64,
    /// The time that the generator may use without asking.
    pub window: Window,
}

/// The answer to a request for time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// The generator may use this time, in this era.
    Window(Window, u64),
    /// The generator may use no time before this instant.
    After(i64),
}

/// Has the ledger begun, after a start or a promotion, and returns it.
fn begun<H: Host>(host: &mut H) -> Result<Ledger, H::Error> {
    let in_recovery = host.in_recovery();
    let present = |state: &mut State| state.ledger.filter(|ledger| ledger.in_recovery == in_recovery);
    if let Some(ledger) = host.lock(present) {
        return Ok(ledger);
    }
    let (node, wal_timeline, next_xid) = (host.node(), host.wal_timeline(), host.next_xid());
    let ledger = {
        let writer = host.writer();
        if let Some(ledger) = writer.lock(present) {
            return Ok(ledger);
        }
        let file = match writer.read()? {
            Some(bytes) => Some(newest(&bytes)?),
            None => None,
        };
        let now = writer.now();
        let (era, started_at) =
            writer.lock(|state| (state.ledger.map_or(0, |ledger| ledger.era + 1), state.started_at));
        let ledger = Ledger::begin(&Facts {
            now,
            steady: writer.steady(),
            started_at,
            node: node.into(),
            wal_timeline,
            in_recovery,
            boot: writer.boot(),
            chance: (writer.chance(), writer.chance()),
            file: file.as_ref().map(|(record, _)| record),
            era,
        });
        writer.lock(|state| {
            state.first_xid = next_xid;
            if let Some((_, known)) = file {
                state.file = known;
            }
        });
        put(&writer, ledger);
        ledger
    };
    Ok(ledger)
}

/// Puts a ledger in force, whose content is in the file.
fn put(writer: &impl Writer, new: Ledger) {
    let now = writer.now();
    writer.lock(|state| {
        let is_same_era = state.ledger.is_some_and(|old| old.era == new.era);
        if !is_same_era {
            state.free_from = None;
        }
        if !new.is_open() {
            let opens_at = new.opens_at(now, writer.steady());
            state.opened_at = state.opened_at.max(Some(opens_at).filter(|&opens_at| opens_at < i64::MAX));
        }
        let shared = writer.shared();
        let is_recalled = state.ledger.is_some_and(|old| old.horizons.bound.recalls < new.horizons.bound.recalls);
        // Before the ledger is in force: who sees the recall sees the lower instant.
        if is_recalled {
            shared.announced.store(new.horizons.announced().max(new.horizons.bound.instant), Ordering::SeqCst);
        } else {
            shared.announced.fetch_max(new.horizons.announced(), Ordering::SeqCst);
        }
        state.ledger = Some(new);
        shared.window.write(new.window, new.era);
    });
}

/// A page that was looked at.
struct Looked {
    marks: Marks,
    exists: bool,
}

/// Returns the marks that a page holds.
///
/// # Errors
/// They are unreadable.
pub fn marks_of(page: &Page) -> Result<Marks, Fault> {
    match &page.bytes {
        None => Ok(page.last_value.map_or_else(Marks::default, |until| Marks::of_all(Used::before(until)))),
        Some(bytes) => Marks::decode(bytes).map(|(marks, _)| marks).map_err(Fault::Page),
    }
}

/// Takes in what the page of this session's database says, and returns that.
fn look<H: Host>(host: &mut H) -> Result<Looked, H::Error> {
    begun(host)?;
    let page = host.page()?;
    let marks = marks_of(&page)?;
    take(host, &marks)?;
    Ok(Looked { marks, exists: page.bytes.is_some() })
}

/// Takes in what the page of this session's database says: the first thing to do on a server that was promoted.
pub fn take_page<H: Host>(host: &mut H) -> Result<(), H::Error> {
    look(host).map(|_| ())
}

fn take<H: Host>(host: &mut H, marks: &Marks) -> Result<(), H::Error> {
    // A server that was promoted meanwhile begins anew.
    let ledger = begun(host)?;
    let (now, steady) = (host.now(), host.steady());
    if ledger.having_read(marks, now, steady) == ledger {
        return Ok(());
    }
    let writer = host.writer();
    let Some(ledger) = writer.lock(|state| state.ledger) else { return Ok(()) };
    let new = ledger.having_read(marks, now, steady);
    if new != ledger {
        // What the next start's safety rests on is there before anybody relies on it, such as that this one waits.
        store(&writer, &new, Some(marks))?;
        put(&writer, new);
    }
    Ok(())
}

/// Returns the window and the era.
fn window(server: &impl Server) -> (Window, u64) {
    server.shared().window.try_read().unwrap_or_else(|| {
        server.lock(|state| state.ledger.map_or((Window::NONE, 0), |ledger| (ledger.window, ledger.era)))
    })
}

/// The window without its end, in which sessions ask for more time if there is any.
fn without_reserve(window: Window) -> Window {
    if window.until >= window.skip { window } else { Window { until: window.until.saturating_sub(RESERVE), ..window } }
}

/// Sees to it that the page says what the ledger says. A standby cannot write it.
fn raise_page<H: Host>(host: &mut H, page: Looked) -> Result<(), H::Error> {
    let Looked { mut marks, mut exists } = page;
    loop {
        let Some(ledger) = host.lock(|state| state.ledger) else { return Ok(()) };
        if host.in_recovery() || exists && ledger.is_in(&marks) {
            return Ok(());
        }
        // A page that is created anew begins with what the file knows of others.
        let of_file = if exists { None } else { Some(known(&host.writer())?) };
        let (me, now, steady) = (ledger.me, host.now(), host.steady());
        let mut outcome = Ok(None);
        host.change_page(|present| {
            exists = present.bytes.is_some();
            let mut new = match marks_of(present) {
                Ok(new) => new,
                Err(fault) => {
                    outcome = Err(fault);
                    return Change::Keep;
                }
            };
            let is_known = ledger.having_read(&new, now, steady).times == ledger.times && new.above <= ledger.above;
            if !is_known || !exists && of_file.is_none() {
                outcome = Ok(Some(new));
                return Change::Keep;
            }
            outcome = Ok(None);
            if let Some(of_file) = of_file.as_ref().filter(|_| !exists) {
                new.unite(of_file, me.node);
            }
            let mut mark = ledger.mark();
            // Another session of this start may know more by now.
            if let Some(known) = new.of(me.node).filter(|known| known.by == me) {
                mark.times = mark.times.united(&known.times, now);
            }
            new.above = new.above.max(ledger.above);
            new.bind(ledger.horizons.bound);
            new.set(mark);
            Change::Write(new.encode(None), new.last_value())
        })?;
        match outcome? {
            None => return Ok(()),
            Some(unknown) => {
                take(host, &unknown)?;
                marks = unknown;
            }
        }
    }
}

/// Returns what the file says, without the bound: the ledger's counts, as an acceptance that could not be written may be there.
fn known<W: Writer>(writer: &W) -> Result<Marks, W::Error> {
    Ok(match writer.read()? {
        Some(bytes) => Marks { bound: Bound::NONE, ..newest(&bytes)?.0.0 },
        None => Marks::default(),
    })
}

/// Begins a generator, whose progress the slot keeps under this key.
pub fn begin<H: Host>(host: &mut H, key: u64) -> Result<Beginning, H::Error> {
    let page = look(host)?;
    let ledger = begun(host)?;
    if !ledger.is_open() {
        let now = host.now();
        if let Grant::After(_) = grant(host, now, now.saturating_add(1), false)? {
            // It asks again: what is waited for may be over before the clock gets there. An open stretch has another era.
            let start = Start { free_from: i64::MIN, resumed: None };
            return Ok(Beginning { start, last_seen: i64::MIN, era: ledger.era, window: Window::NONE });
        }
        return begin(host, key);
    }
    let floor = ledger.floor.max(host.untraced());
    let start = host.slot(|slot| slot.start(ledger.era, floor, key));
    // A generator that resumes may go on in its tick without asking for it.
    let is_in_page = if start.resumed.is_some() {
        raise_page(host, page)?;
        true
    } else {
        host.in_recovery() || page.exists && ledger.is_in(&page.marks)
    };
    let last_seen = host.shared().last_seen.load(Ordering::Acquire);
    let window = if is_in_page { without_reserve(ledger.window) } else { Window::NONE };
    Ok(Beginning { start, last_seen, era: ledger.era, window })
}

/// Grants the time of a tick that holds `now` and ends at `tick_end`. `goes_back` says that the generator can go back in time.
///
/// # Errors
/// The server's; then nothing was granted.
pub fn grant<H: Host>(host: &mut H, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, H::Error> {
    let page = look(host)?;
    let (open, era) = window(host);
    let mut grant = Grant::Window(without_reserve(open), era);
    if !without_reserve(open).holds(now, tick_end) {
        // While granted time remains, nobody waits for the session that asks for more.
        let remains = open.holds(now, tick_end);
        let writer = if remains { host.try_writer() } else { Some(host.writer()) };
        grant = match writer.map(|writer| extend(&writer, &page.marks, now, tick_end, goes_back)) {
            Some(Ok(extended)) => extended,
            Some(Err(error)) if !remains => return Err(error),
            // The next attempt may succeed.
            _ => Grant::Window(open, era),
        };
    }
    if let Grant::Window(..) = grant {
        raise_page(host, page)?;
    }
    Ok(grant)
}

fn extend<W: Writer>(writer: &W, page: &Marks, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, W::Error> {
    let Some(ledger) = writer.lock(|state| state.ledger) else { return Ok(Grant::After(now)) };
    let window = without_reserve(ledger.window);
    if window.holds(now, tick_end) {
        // Another session was faster.
        return Ok(Grant::Window(window, ledger.era));
    }
    let granted = if goes_back && ledger.is_open() && now < ledger.window.from {
        ledger.gone_back(now)
    } else {
        let granted = ledger.granted(now, writer.steady(), tick_end);
        granted.map(|new| (new, without_reserve(new.window)))
    };
    let (new, window) = match granted {
        Ok(granted) => granted,
        Err(until) => return Ok(Grant::After(until)),
    };
    if new != ledger {
        store(writer, &new, Some(page))?;
        put(writer, new);
    }
    writer.shared().last_seen.fetch_max(now, Ordering::AcqRel);
    Ok(Grant::Window(window, new.era))
}

/// Counts this session as one that uses the ledger: the exit note of the last one is withdrawn.
///
/// # Errors
/// The server's; then it is not counted.
pub fn join<H: Host>(host: &mut H) -> Result<(), H::Error> {
    begun(host)?;
    let writer = host.writer();
    note(&writer, None)?;
    writer.shared().sessions.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

/// Leaves the progress of this session's generators to later ones, at exit, while the slot still belongs to the session.
/// `progress` is none where it exits in the middle of making an ID. `may_note` says whether all sessions take part in the count.
pub fn leave<H: Host>(host: &mut H, progress: Option<&[FinalProgress]>, may_note: bool) {
    let Some(ledger) = host.lock(|state| state.ledger) else { return };
    let of_this_era = || progress.into_iter().flatten().filter(|last| last.era == ledger.era);
    let free_from = match progress {
        Some(_) => of_this_era().map(|last| last.progress.free_from()).max(),
        None => Some(ledger.window.until),
    };
    host.slot(|slot| match progress {
        None => slot.abandon(ledger.era, ledger.window.until),
        Some(all) => all.iter().for_each(|last| slot.store(last)),
    });
    let present = of_this_era().map(|last| last.progress.start).max().unwrap_or(i64::MIN);
    if present <= host.now() {
        host.shared().last_seen.fetch_max(present, Ordering::AcqRel);
    }
    host.lock(|state| {
        if state.ledger.is_some_and(|present| present.era == ledger.era) {
            state.free_from = state.free_from.max(free_from);
        }
    });
    host.point("left");
    if host.shared().sessions.fetch_sub(1, Ordering::SeqCst) == 1 && may_note {
        note_exit(host);
    }
}

/// Notes from when on time is free, once no session makes IDs any more. Without the note, the next start waits for the end of
/// the time that was granted.
fn note_exit<H: Host>(host: &mut H) {
    // The session that has the right to write makes IDs, and leaves later.
    let Some(writer) = host.try_writer() else { return };
    if writer.shared().sessions.load(Ordering::SeqCst) > 0 {
        return;
    }
    let Some(boot) = writer.boot() else { return };
    let (Some(ledger), free_from) = writer.lock(|state| (state.ledger, state.free_from)) else { return };
    let free_from = free_from.unwrap_or(i64::MIN).max(writer.shared().announced.load(Ordering::SeqCst));
    if let Some(left) = ledger.exit_note(boot, free_from) {
        let _ = note(&writer, Some(left));
    }
}

/// Writes this server's mark into the page of its database, which may just have been created.
pub fn record_mark<H: Host>(host: &mut H) -> Result<(), H::Error> {
    let page = look(host)?;
    if host.in_recovery() {
        return Ok(());
    }
    {
        // No page names an incarnation or a start before the file does.
        let writer = host.writer();
        let Some(ledger) = writer.lock(|state| state.ledger) else { return Ok(()) };
        store(&writer, &ledger, Some(&page.marks))?;
    }
    raise_page(host, page)
}

/// Goes on at the present clock although later IDs exist. Returns the instant from which IDs can be made, whether anything has
/// changed, and up to where horizons had bound this server.
pub fn accept<H: Host>(host: &mut H) -> Result<(i64, bool, i64), H::Error> {
    let page = look(host)?;
    let (now, is_new, bound) = {
        let writer = host.writer();
        // Until a record is written: after a crash, one that could not be written may take back what was announced since.
        writer.lock(|state| state.file.is_in_doubt = true);
        // Read here, so that nobody announces a later instant while this session waits for the right to write.
        let now = writer.now();
        let Some(ledger) = writer.lock(|state| state.ledger) else { return Ok((now, false, i64::MIN)) };
        let new = ledger.accepted(now);
        if new != ledger {
            store(&writer, &new, Some(&page.marks))?;
            put(&writer, new);
            writer.lock(|state| state.opened_at = None);
            // Before anything fails: no generator begins at an instant that was taken back.
            writer.shared().last_seen.fetch_min(now, Ordering::AcqRel);
        }
        (now, new != ledger, ledger.horizons.announced())
    };
    let was_seen = host.shared().last_seen.load(Ordering::Acquire);
    let from = match grant(host, now, now.saturating_add(1), false)? {
        // The open stretch holds the present: sessions go on where they are.
        Grant::Window(..) if !is_new && was_seen > now => {
            host.lock(|state| state.ledger.map_or(now, |ledger| ledger.window.until))
        }
        Grant::Window(..) => host.lock(|state| state.ledger.map_or(now, |ledger| ledger.floor)).max(now),
        Grant::After(until) => {
            raise_page(host, page)?;
            until
        }
    };
    let shared = host.shared();
    host.lock(|state| {
        // Beyond what binds lies only what was announced by a clock that was read before.
        let bound = state.ledger.map_or(now, |ledger| if ledger.is_open() { ledger.window.until } else { ledger.horizons.bound.instant });
        shared.announced.fetch_min(bound.max(now), Ordering::SeqCst);
    });
    shared.recalls.fetch_add(1, Ordering::SeqCst);
    // An instant that was announced in the open stretch is not taken back.
    let from = from.max(shared.announced.load(Ordering::SeqCst));
    shared.last_seen.fetch_min(from, Ordering::AcqRel);
    Ok((from, is_new, bound))
}

/// Has this server use no tick that starts before an instant, in a transaction that begins from now on. Returns the instant from
/// which IDs are made, and whether anything has changed.
pub fn start_above<H: Host>(host: &mut H, instant: i64) -> Result<(i64, bool), H::Error> {
    let page = look(host)?;
    let (new, is_new) = {
        let writer = host.writer();
        let Some(ledger) = writer.lock(|state| state.ledger) else { return Ok((instant, false)) };
        let new = ledger.starting_above(instant);
        if new != ledger {
            store(&writer, &new, Some(&page.marks))?;
            put(&writer, new);
        }
        (new, new != ledger)
    };
    fence(Ordering::SeqCst);
    raise_page(host, page)?;
    Ok((new.next_free(host.now()).max(instant), is_new))
}

/// Has horizons bind other servers up to the end of granted time, and grants the present. Returns the instant that can be
/// announced: the present, or the end of granted time where a clock that was ahead has used what follows.
pub fn bind<H: Host>(host: &mut H) -> Result<i64, H::Error> {
    let is_binding =
        |state: &mut State| !state.file.is_in_doubt && state.ledger.is_some_and(|ledger| ledger.binding() == ledger);
    begun(host)?;
    if !host.lock(is_binding) {
        // No file names an incarnation before it has looked for an old primary.
        look(host)?;
        let writer = host.writer();
        if let Some(ledger) = writer.lock(|state| state.ledger) {
            store(&writer, &ledger.binding(), None)?;
            put(&writer, ledger.binding());
        }
    }
    let now = host.now();
    if let Grant::Window(..) = grant(host, now, now.saturating_add(1), false)? {
        return Ok(now);
    }
    let page = look(host)?;
    let settled = {
        let writer = host.writer();
        let Some(old) = writer.lock(|state| state.ledger) else { return Ok(i64::MIN) };
        let (new, settled) = old.settled(now);
        if new != old {
            store(&writer, &new, Some(&page.marks))?;
            put(&writer, new);
        }
        settled
    };
    raise_page(host, page)?;
    Ok(settled)
}

/// Returns how long, in microseconds, a session has to wait for `until` because of a start or a promotion and not because of the
/// clock.
pub fn wait_of_start(server: &impl Server, until: i64) -> i64 {
    let steady = server.steady();
    let is_due = server.lock(|state| {
        state.opened_at.is_some_and(|opened_at| until <= opened_at)
            || state.ledger.is_some_and(|ledger| ledger.lookout.is_waiting(steady))
    });
    if is_due { AHEAD + super::marks::MARGIN } else { 0 }
}
