//! Names of backups on their target, and selection of the backups to remove.
//!
//! `gateway-1f2e3d4c-20261121T030000.123Z.age`: the series distinguishes the files of this gateway from those of
//! others in the same folder. Nothing else is ever removed.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Suffix of a file that is being written.
const DRAFT: &str = ".part";

/// Series: the backup files of one gateway.
#[derive(Clone, Debug)]
pub(super) struct Series(String);

impl Series {
    pub(super) fn new(id: &str) -> Series {
        Series(format!("gateway-{id}-"))
    }

    pub(super) fn name(&self, at: Timestamp) -> String {
        let at = at.to_zoned(TimeZone::UTC);
        format!("{}{}.{:03}Z.age", self.0, at.strftime("%Y%m%dT%H%M%S"), at.millisecond())
    }

    pub(super) fn draft(&self, name: &str) -> String {
        format!("{name}{DRAFT}")
    }

    /// Reports whether the name is that of a complete backup of the series.
    pub(super) fn has(&self, name: &str) -> bool {
        let stamp = name.strip_prefix(self.0.as_str()).and_then(|rest| rest.strip_suffix("Z.age"));
        stamp.is_some_and(|stamp| {
            let digits = |range: std::ops::Range<usize>| {
                stamp.get(range).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
            };
            stamp.len() == 19
                && digits(0..8)
                && stamp.get(8..9) == Some("T")
                && digits(9..15)
                && stamp.get(15..16) == Some(".")
                && digits(16..19)
        })
    }

    /// Returns the names of files left behind by an interrupted run.
    pub(super) fn drafts<'n>(&self, names: &'n [String]) -> Vec<&'n String> {
        let is_draft = |name: &&String| name.strip_suffix(DRAFT).is_some_and(|name| self.has(name));
        names.iter().filter(is_draft).collect()
    }

    pub(super) fn count(&self, names: &[String]) -> usize {
        names.iter().filter(|name| self.has(name)).count()
    }

    /// Returns the oldest backups beyond `retain`. Never returns the one that was just made, whatever the clock says.
    pub(super) fn surplus<'n>(&self, names: &'n [String], made: &str, retain: usize) -> Vec<&'n String> {
        let mut others: Vec<&String> =
            names.iter().filter(|name| self.has(name) && name.as_str() != made).collect();
        others.sort_unstable();
        let surplus = others.len().saturating_sub(retain.saturating_sub(1));
        others.truncate(surplus);
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| format!("gateway-abcd1234-{name}")).collect()
    }

    #[test]
    fn a_name_is_recognised_and_nothing_else_is() {
        let series = Series::new("abcd1234");
        let name = series.name("2026-11-21T03:00:00.123456Z".parse().unwrap());
        assert_eq!(name, "gateway-abcd1234-20261121T030000.123Z.age");
        assert!(series.has(&name) && !series.has(&series.draft(&name)));
        for foreign in [
            "gateway-abcd1235-20261121T030000.123Z.age",
            "gateway-abcd1234-20261121T030000.123Z.age.bak",
            "gateway-abcd1234-2026112xT030000.123Z.age",
            "gateway-abcd1234-notes.age",
            "gateway-abcd1234-20261121T030000.12éZ.age",
            "",
        ] {
            assert!(!series.has(foreign), "{foreign}");
        }
    }

    #[test]
    fn the_oldest_of_the_series_go_and_drafts_are_found() {
        let series = Series::new("abcd1234");
        let all = names(&[
            "20261103T030000.000Z.age",
            "20261101T030000.000Z.age",
            "20261102T030000.000Z.age",
            "20261104T030000.000Z.age.part",
        ]);
        let other = "gateway-00000000-20200101T030000.000Z.age".to_owned();
        let listed: Vec<String> = all.iter().cloned().chain([other, "mine.txt".to_owned()]).collect();
        assert_eq!(series.count(&listed), 3);
        assert_eq!(series.surplus(&listed, &all[0], 2), [&all[1]]);
        assert_eq!(series.surplus(&listed, &all[0], 1), [&all[1], &all[2]]);
        assert!(series.surplus(&listed, &all[0], 3).is_empty());
        // The clock was set back: the newest backup has the oldest name, and is kept.
        assert_eq!(series.surplus(&listed, &all[1], 2), [&all[2]]);
        assert_eq!(series.drafts(&listed), [&all[3]]);
    }
}
