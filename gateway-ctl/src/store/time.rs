//! Highest time seen, and the record of expired objects. Both prevent a slow clock from reviving anything.

mod overdue;

use std::time::Duration;

use redb::WriteTransaction;

use super::audit::ChainHead;
use super::error::Error;
use super::schema::META_TEXT;
use super::values;
use crate::clock::{Clock, HighTime};

/// Key of the table `meta_text`.
const HIGH_TIME: &str = "high_time";

/// Time of the last save, and the boot in which the current exceptions were made.
#[derive(Debug, Default)]
pub(super) struct SavedTime {
    /// Time of the save on the boot clock; `None`: not yet in this run.
    at: Option<Duration>,
    /// True if the last run belongs to another boot, and its exceptions have not been checked yet.
    other_boot: bool,
}

/// Raises the clock to the times in the file: the kept time, and that of the last audit entry.
pub(super) fn resume(
    txn: &redb::ReadTransaction,
    head: &ChainHead,
    clock: &dyn Clock,
) -> Result<SavedTime, Error> {
    let kept: Option<HighTime> = values::text(txn, HIGH_TIME)?.and_then(|text| text.parse().ok());
    let boot_id = clock.boot_id();
    let other_boot = kept.as_ref().is_none_or(|kept| kept.boot_id != boot_id);
    // The entry's boot is unknown, so treat the entry as written just now.
    clock.raise(&HighTime { wall: head.at(), boot: clock.boot(), boot_id });
    if let Some(kept) = &kept {
        clock.raise(kept);
    }
    Ok(SavedTime { at: None, other_boot })
}

/// Stores the time together with another change.
pub(super) fn put(txn: &WriteTransaction, high: &HighTime) -> Result<(), Error> {
    let mut texts = txn.open_table(META_TEXT).map_err(Error::at("keep the time"))?;
    texts.insert(HIGH_TIME, high.to_string().as_str()).map_err(Error::at("keep the time"))?;
    Ok(())
}

#[cfg(test)]
mod tests;
