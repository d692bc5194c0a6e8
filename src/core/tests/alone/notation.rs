//! Texts that say which events a lone server plays, and what must be true afterwards. Instants and durations are in seconds, or with `h`
//! in hours; instants count from noon.

use flake_core::ledger::durable::page::ensure_page_current;
use flake_core::ledger::durable::record::{Record, Reserved};
use flake_core::ledger::host::{Fault, Page, Server};
use flake_core::ledger::time::grant::{Grant, begin, grant};
use flake_core::ledger::time::lead::{announce, lead};
use flake_core::ledger::time::operator::{accept, start_above};
use flake_core::ledger::time::shared::generation_of;

use super::making::{make, session};
use super::{Alone, HOUR, NOON, SECOND, Trouble};

fn span(text: &str) -> i64 {
    let (number, unit) = text.strip_suffix('h').map_or((text, SECOND), |number| (number, HOUR));
    (number.parse::<f64>().expect(text) * unit as f64).round() as i64
}

fn instant(text: &str) -> i64 {
    NOON + span(text)
}

/// Reads the reserved time of both generations, as in `10/60`.
fn until(text: &str) -> [i64; 2] {
    let (one, other) = text.split_once('/').expect(text);
    [instant(one), instant(other)]
}

/// A record that another start has left in the page: `10/60 1` after one acceptance.
fn foreign(words: &[&str]) -> Vec<u8> {
    let acceptances = words.get(1).map_or(0, |count| count.parse().unwrap());
    Record { reserved: Reserved { acceptances, until: until(words[0]) }, writer: 99, ..Record::default() }.encode(0)
}

impl Alone {
    /// Makes an ID in the session, which begins now if there is none. Returns when its tick began.
    pub fn make(&mut self) -> Result<i64, Trouble> {
        let mut own = self.own.take().unwrap_or_else(|| session(self));
        let made = make(self, &mut own);
        self.own = Some(own);
        made
    }

    /// Lets everything in a text happen.
    pub fn play(self, text: &str) -> Self {
        text.split(',').fold(self, |alone, text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            alone.happens(text, words[0], &words[1..])
        })
    }

    fn happens(mut self, text: &str, word: &str, words: &[&str]) -> Self {
        let at = |place: usize| words.get(place).map(|word| instant(word));
        let now = self.now.get();
        match word {
            "at" => drop(self.at(instant(words[0]))),
            "back" => drop(self.at(now - span(words[0]))),
            "pass" => drop(self.pass(span(words[0]))),
            "steady" => self.monotonic.set(span(words[0])),
            "max-lead" => self.max_lead.set(span(words[0])),
            "disk" => self.disk_fails.set(words[0] == "fails"),
            "restart" => return self.restarted(),
            "session" => self.own = Some(session(&mut self)),
            "foreign" => self.page.bytes = Some(foreign(words)),
            "meanwhile" => self.meanwhile.set(Some(foreign(words))),
            "forget-page" => self.page = Page::default(),
            "look" => ensure_page_current(&mut self).unwrap(),
            "lead" => lead(&self, self.shared.era(), false, instant(words[0])),
            "lead-snos" => lead(&self, self.shared.era(), true, instant(words[0])),
            "announce" => assert_eq!(announce(&self, self.shared.era(), instant(words[0])), at(0), "{text}"),
            "flush-fails" => self.let_the_flush_fail(),
            "note" => self.noted = (self.shared.era(), self.lock(|state| state.ledger)),
            "make" => {
                let made = self.make().expect(text);
                assert!(at(0).is_none_or(|at| made == at), "{text}: {}", made - NOON);
            }
            "accept" => {
                let accepted = accept(&mut self).expect(text);
                assert!(accepted.is_new && at(0).is_none_or(|at| accepted.from == at), "{text}");
            }
            "grant" => {
                let era = self.shared.era();
                let granted = grant(&mut self, era, now).expect(text);
                assert!(words.is_empty() || granted == Grant::Until(instant(words[0])), "{text}: {granted:?}");
            }
            "above" => {
                let above = start_above(&mut self, instant(words[0])).expect(text);
                let is_new = words.get(2) != Some(&"old");
                assert_eq!(above, (at(1).unwrap_or(instant(words[0])), is_new), "{text}");
            }
            _ => self.is_true(text, word, words),
        }
        self
    }

    fn is_true(&mut self, text: &str, word: &str, words: &[&str]) {
        let refused = |result: Result<i64, Trouble>| match result.expect_err(text) {
            Trouble::Fault(Fault::Lead(lead, _)) => lead,
            other => panic!("{text}: {other:?}"),
        };
        let (era, ledger, in_file, in_page) = (self.shared.era(), self.ledger(), self.in_file(), self.in_page());
        let now = self.now.get();
        let is_so = match word {
            "floor" => ledger.floor == instant(words[0]),
            "led" => self.led() > now,
            "right" => self.led() == now,
            "reserved" => [ledger.reserved, in_file, in_page].iter().all(|one| one.end() == instant(words[0])),
            "reserved-beyond" => [in_file, in_page].iter().all(|one| one.end() > instant(words[0])),
            "in-file" => in_file.until == until(words[0]),
            "in-page" => in_page.until == until(words[0]),
            "acceptances" => {
                let count: u64 = words[0].parse().unwrap();
                let all = [ledger.reserved, in_file, in_page];
                all.iter().all(|one| one.acceptances == count) && generation_of(era) as u64 == count & 1
            }
            "generation" => {
                let generation: usize = words[0].parse().unwrap();
                [ledger.reserved.generation(), generation_of(era)] == [generation; 2]
            }
            "new-era" => era > self.noted.0,
            "same-era" => era == self.noted.0,
            "unchanged" => Some(ledger) == self.noted.1,
            "too-far" => refused(self.make()) > span(words[0]),
            "both-lead" => accept(self) == Err(Trouble::Fault(Fault::BothLead(span(words[0]), self.max_lead.get()))),
            "accept-not" => {
                let accepted = accept(self).expect(text);
                !accepted.is_new && accepted.from == instant(words[0])
            }
            "accept-fails" => accept(self) == Err(Trouble::Disk),
            "grant-fails" => grant(self, era, now) == Err(Trouble::Disk),
            "grant-over" => grant(self, era, now) == Ok(Grant::Over),
            "closed" => begin(self).expect(text).limit == i64::MIN,
            _ => panic!("there is no event {text:?}"),
        };
        assert!(is_so, "{text}, at {}: {ledger:?}, {in_file:?} {in_page:?}", now - NOON);
    }

    /// Leaves an acceptance in the file whose write has failed in the flush.
    fn let_the_flush_fail(&self) {
        let accepted = Record { reserved: Reserved { acceptances: 1, ..self.in_file() }, ..Record::default() };
        let half = 1 - self.lock(|state| {
            state.file.is_in_doubt = true;
            state.file.half
        });
        let bytes = accepted.encode(1 << 40);
        self.file.borrow_mut().as_mut().unwrap()[half * 4096..][..bytes.len()].copy_from_slice(&bytes);
    }
}
