//! The names of the load: blocked names, queried names and their frequency.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// Number of distinct names of the load by kind.
const ASKED: usize = 10_000;
const CACHED: usize = 2_000;
/// Ratio of the mixture: one query in this number is for a blocked name.
const BLOCKED_IN_MIX: u64 = 5;
const MIXED: usize = 100_000;

const FIRST: [&str; 8] = ["ads", "track", "stats", "pixel", "cdn", "metrics", "m", "t"];
const TOP: [&str; 8] = ["com", "net", "org", "info", "de", "xyz", "top", "io"];

/// Returns `count` distinct domains of about 20 letters, as block lists contain them. The sequence is always the same.
pub(super) fn domains(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(domain)
}

pub(super) fn domain(number: usize) -> String {
    let mut chance = Chance::new(number as u64);
    let mut name = String::new();
    if chance.below(5) < 2 {
        name.push_str(FIRST[chance.below(8) as usize]);
        name.push('.');
    }
    for _ in 0..3 + chance.below(3) {
        name.push(char::from(b"bcdfghklmnprstvwz"[chance.below(17) as usize]));
        name.push(char::from(b"aeiou"[chance.below(5) as usize]));
    }
    let top = TOP[chance.below(8) as usize];
    let _ = write!(name, "-{number:x}.{top}");
    name
}

/// Reproducible pseudo-random numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns an index below `names` by Zipf's law: the first is queried most, the second half as often, and so on.
    fn name(&mut self, names: usize) -> usize {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = (names as f64 + 1.0).powf(share) - 1.0;
        (rank as usize).min(names - 1)
    }
}

/// Queried names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names of the list, with equal frequency.
    Blocked,
    /// Names that were queried before, with equal frequency.
    Cached,
    /// Names by Zipf's law; one query in five is for a blocked name.
    Mix,
    /// Names of the list, each once.
    Once,
}

/// A load of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Warm,
    Fixed,
    Fast,
    Calm,
}

impl Phase {
    const ALL: [Phase; 4] = [Phase::Warm, Phase::Fixed, Phase::Fast, Phase::Calm];

    /// Returns the share of the list that the phase queries if no name may repeat, in hundredths.
    fn share(self) -> Range<usize> {
        match self {
            Phase::Warm => 0..5,
            Phase::Fixed => 5..15,
            Phase::Calm => 15..20,
            Phase::Fast => 20..100,
        }
    }
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Blocked, Kind::Cached, Kind::Mix, Kind::Once];

    pub(super) fn bench(self) -> &'static str {
        match self {
            Kind::Blocked => "dns_blocked",
            Kind::Cached => "dns_cached",
            Kind::Mix => "dns_mix",
            Kind::Once => "dns_once",
        }
    }
}

/// The names of the load and its files in the format of dnsperf.
#[derive(Debug)]
pub(super) struct Questions {
    folder: TempDir,
    listed: usize,
    pub blocked: Vec<String>,
    pub passing: Vec<String>,
}

impl Questions {
    pub(super) fn write(listed: usize) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("gateway-").tempdir().context("temporary directory")?;
        let every = (listed / ASKED).max(1);
        let blocked: Vec<String> = domains(listed).step_by(every).take(ASKED).collect();
        let passing: Vec<String> = (0..CACHED).map(|number| format!("www.site{number}.example")).collect();
        let questions = Self { folder, listed, blocked, passing };
        for kind in Kind::ALL {
            for phase in Phase::ALL {
                let file = questions.file(kind, phase);
                if !file.exists() {
                    let lines = questions.asked(kind, phase).map(|name| format!("{name} A"));
                    write_lines(&file, lines)?;
                }
            }
        }
        Ok(questions)
    }

    pub(super) fn file(&self, kind: Kind, phase: Phase) -> PathBuf {
        let name = match kind {
            Kind::Once => format!("{}_{phase:?}", kind.bench()),
            _ => kind.bench().to_owned(),
        };
        self.folder.path().join(name)
    }

    fn asked(&self, kind: Kind, phase: Phase) -> Box<dyn Iterator<Item = Cow<'_, str>> + '_> {
        match kind {
            Kind::Blocked => Box::new(self.blocked.iter().map(Cow::from)),
            Kind::Cached => Box::new(self.passing.iter().map(Cow::from)),
            Kind::Once => {
                let Range { start, end } = phase.share();
                let place = |share: usize| self.listed / 100 * share;
                Box::new((place(start)..place(end)).map(|number| domain(number).into()))
            }
            Kind::Mix => {
                let mut chance = Chance::new(MIXED as u64);
                Box::new((0..MIXED).map(move |_| {
                    let names = if chance.below(BLOCKED_IN_MIX) == 0 { &self.blocked } else { &self.passing };
                    names[chance.name(names.len())].as_str().into()
                }))
            }
        }
    }
}

/// Writes a file line by line in one write.
pub(super) fn write_lines(path: &Path, lines: impl Iterator<Item = String>) -> Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_domain_comes_twice_and_none_is_below_another() {
        let all: BTreeSet<String> = domains(20_000).collect();
        assert_eq!(all.len(), 20_000);
        for name in &all {
            let above = name.split_once('.').map(|(_, above)| above);
            assert!(above.is_none_or(|above| !all.contains(above)), "{name}");
        }
        let letters: usize = all.iter().map(String::len).sum();
        assert!((13..25).contains(&(letters / all.len())), "{}", letters / all.len());
    }

    #[test]
    fn the_mixture_asks_for_some_names_more_often_than_for_others() {
        let questions = Questions::write(20_000).expect("questions");
        let asked: Vec<_> = questions.asked(Kind::Mix, Phase::Fast).collect();
        let count = |name: &str| asked.iter().filter(|asked| *asked == name).count();
        let (first, hundredth) = (count(&questions.passing[0]), count(&questions.passing[99]));
        assert!(first > 50 * hundredth.max(1) / 2, "{first} {hundredth}");
        let blocked = asked.iter().filter(|name| !name.ends_with(".example")).count();
        assert!((MIXED / 6..MIXED / 4).contains(&blocked), "{blocked}");
        let once: Vec<_> = Phase::ALL.iter().flat_map(|phase| questions.asked(Kind::Once, *phase)).collect();
        let different: BTreeSet<_> = once.iter().collect();
        assert_eq!((once.len(), different.len()), (20_000, 20_000), "each once");
    }
}
