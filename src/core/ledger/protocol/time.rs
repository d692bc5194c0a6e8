//! Granting time: to generators that begin, and to generators that have reached the end of the window.

use super::begun;
use super::page::{raise_page, read_page};
use super::{in_force, put};
use crate::instant::BEGINNING;
use crate::ledger::host::{Host, Server, SlotOwner, Writer};
use crate::ledger::marks::Marks;
use crate::ledger::part_time::{FAR, PartTime};
use crate::ledger::record::store;
use crate::ledger::slot::Start;
use crate::ledger::window::Window;

/// If less than this remains of the granted time, one session asks for more, and the others continue meanwhile. In microseconds.
const RESERVE: i64 = 1_000_000;

/// Where a generator begins.
#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    /// The first unused tick, or the progress to resume from.
    pub start: Start,
    /// The era in which all this is valid.
    pub era: u64,
    /// The time that the generator may use without asking the ledger.
    pub window: Window,
}

/// The answer to a request for time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// The generator may use this window in this era.
    Window(Window, u64),
    /// The generator may use no time before this instant.
    After(i64),
}

/// Returns the window and the era.
fn window(server: &impl Server) -> (Window, u64) {
    server.shared().window.try_read().unwrap_or_else(|| {
        server.lock(|state| {
            state
                .ledger
                .map_or((Window::NONE, 0), |ledger| (ledger.time.window.unwrap_or(Window::NONE), ledger.time.era))
        })
    })
}

/// The window without its reserve, in which a session asks for more time. A window that ends at used time has no reserve, because
/// it cannot be extended.
fn without_reserve(window: Window) -> Window {
    if window.until >= window.skip { window } else { Window { until: window.until.saturating_sub(RESERVE), ..window } }
}

/// Begins a generator. `goes_back` says whether it can go back in time, and its slot keeps its progress.
pub fn begin<H: SlotOwner>(host: &mut H, goes_back: bool) -> Result<Beginning, H::Error> {
    let page = read_page(host)?;
    let ledger = begun(host)?;
    let PartTime { window: Some(open), era, floor, .. } = ledger.time else {
        let now = host.now();
        if let Grant::After(_) = grant(host, now, now.saturating_add(1), false)? {
            // The generator will ask again, because the wait may end before the clock reaches that instant. The era differs once a
            // window opens.
            let start = Start { free_from: BEGINNING, resumed: None };
            return Ok(Beginning { start, era: ledger.time.era, window: Window::NONE });
        }
        return begin(host, goes_back);
    };
    let start =
        if goes_back { host.slot(|slot| slot.start(era, floor)) } else { Start { free_from: floor, resumed: None } };
    // A generator without a window asks for time, whether it resumes or not, and then the page is written.
    let is_in_page = page.exists && ledger.is_in(&page.marks);
    let window = if is_in_page { without_reserve(open) } else { Window::NONE };
    Ok(Beginning { start, era, window })
}

/// Grants the time of a tick that contains `now` and ends at `tick_end`. `goes_back` says whether the generator can go back in
/// time.
///
/// # Errors
/// The server's errors; nothing is granted then.
pub fn grant<H: Host>(host: &mut H, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, H::Error> {
    let page = read_page(host)?;
    let (open, era) = window(host);
    let mut grant = Grant::Window(without_reserve(open), era);
    if !without_reserve(open).holds(now, tick_end) {
        // As long as granted time remains, no session waits for the one that asks for more.
        let remains = open.holds(now, tick_end);
        let writer = if remains { host.try_writer() } else { Some(host.writer()) };
        grant = match writer.map(|writer| extend(&writer, &page.marks, now, tick_end, goes_back)) {
            Some(Ok(extended)) => extended,
            Some(Err(error)) if !remains => return Err(error),
            // The session continues in the granted time, and asks again later.
            _ => Grant::Window(open, era),
        };
    }
    if let Grant::Window(..) = grant {
        raise_page(host, page)?;
        if let Some(until) = host.lock(|state| state.behind.take()) {
            host.is_behind(until);
        }
    }
    Ok(grant)
}

fn extend<W: Writer>(writer: &W, page: &Marks, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, W::Error> {
    let Some(ledger) = writer.lock(in_force) else { return Ok(Grant::After(now)) };
    let open = ledger.time.window;
    if let Some(window) = open.map(without_reserve).filter(|window| window.holds(now, tick_end)) {
        // Another session has extended the window in the meantime.
        return Ok(Grant::Window(window, ledger.time.era));
    }
    let granted = if goes_back && open.is_some_and(|open| now < open.from) {
        ledger.gone_back(now)
    } else {
        let granted = ledger.granted(now, tick_end);
        granted.map(|new| (new, new.time.window.map_or(Window::NONE, without_reserve)))
    };
    let (new, window) = match granted {
        Ok(granted) => granted,
        Err(until) => return Ok(Grant::After(until)),
    };
    if new != ledger {
        store(writer, &new, page)?;
        let behind = ledger.behind(page, now);
        writer.lock(|state| state.behind = state.behind.max(behind));
        put(writer, new);
    }
    Ok(Grant::Window(window, new.time.era))
}

/// Returns how many microseconds a session must be ready to wait until `until`, if the time before it is closed because of a start
/// or a promotion and not because of the clock.
pub fn wait_of_start(server: &impl Server, until: i64) -> i64 {
    let is_due = server.lock(|state| state.opened_at.is_some_and(|opened_at| until <= opened_at));
    if is_due { FAR } else { 0 }
}
