//! The highest time seen, and the record of what has ended: they keep a clock that is behind from reviving anything.

mod overdue;

use std::time::Duration;

use redb::WriteTransaction;

use super::audit::Head;
use super::error::Error;
use super::schema::META_TEXT;
use super::values;
use crate::clock::{Clock, HighTime};

/// Key of the table `meta_text`.
const HIGH_TIME: &str = "high_time";

/// When the time was last kept, and in which boot the exceptions were made that count.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// On the boot clock. None: not yet in this run.
    at: Option<Duration>,
    /// The boot of the last run was another one, and its exceptions were not yet looked at.
    other_boot: bool,
}

/// Raises the clock to what the file knows: the kept time, and that of the last audit entry.
pub(super) fn resume(txn: &redb::ReadTransaction, head: &Head, clock: &dyn Clock) -> Result<Kept, Error> {
    let kept: Option<HighTime> = values::text(txn, HIGH_TIME)?.and_then(|text| text.parse().ok());
    let boot_id = clock.boot_id();
    let other_boot = kept.as_ref().is_none_or(|kept| kept.boot_id != boot_id);
    // Of its boot nothing is known: as if the entry was written just now.
    clock.raise(&HighTime { wall: head.at(), boot: clock.boot(), boot_id });
    if let Some(kept) = &kept {
        clock.raise(kept);
    }
    Ok(Kept { at: None, other_boot })
}

/// Keeps the time with another change.
pub(super) fn put(txn: &WriteTransaction, high: &HighTime) -> Result<(), Error> {
    let mut texts = txn.open_table(META_TEXT).map_err(Error::at("keep the time"))?;
    texts.insert(HIGH_TIME, high.to_string().as_str()).map_err(Error::at("keep the time"))?;
    Ok(())
}

#[cfg(test)]
mod tests;
