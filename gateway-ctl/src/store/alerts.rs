//! Alerts and the notifications about them.
//!
//! They are stored beside the configuration: a rollback must not undo the record of an alert. An alert is no change of the
//! configuration, so it has no audit entry; requests about it have one.

use gateway_core::alerts::{self, Alert, AlertStatus, Changes, Notification, Record, Stored};
use gateway_model::Id;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::Severity;
use jiff::{SignedDuration, Timestamp};
use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError};
use serde::de::DeserializeOwned;

use super::audit::PageEnd;
use super::error::Error;
use super::schema::META;
use super::wipe::{ALERT_NOTIFICATIONS, ALERTS};
use super::{Store, values};

/// ID of the alert to the JSON of its record.
const RECORDS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new(ALERTS);
/// Sequence number to the JSON of the notification.
const NOTIFICATIONS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new(ALERT_NOTIFICATIONS);

/// Keys of the table `meta`. The numbers continue after a wipe.
const LAST_ID: &str = "alert_last";
const LAST_SEQUENCE: &str = "alert_notification_last";

/// Longest cooldown of a rule: a resolved alert that is older does not return.
const LONGEST_COOLDOWN: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Maximum number of alerts and of notifications that are kept. Open alerts are always kept.
const MAX_ROWS: u64 = 20_000;

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertFilter {
    pub kind: Option<AlertKind>,
    pub severity: Option<Severity>,
    pub status: Option<AlertStatus>,
    pub device_id: Option<Id>,
    pub resource_type: Option<String>,
    pub resource_id: Option<String>,
}

impl AlertFilter {
    fn matches(&self, alert: &Alert) -> bool {
        fn same<T: PartialEq>(want: Option<&T>, have: Option<&T>) -> bool {
            want.is_none() || want == have
        }
        same(self.kind.as_ref(), Some(&alert.kind))
            && same(self.severity.as_ref(), Some(&alert.severity))
            && same(self.status.as_ref(), Some(&alert.status))
            && same(self.device_id.as_ref(), alert.device_id.as_ref())
            && same(self.resource_type.as_ref(), Some(&alert.resource_type))
            && same(self.resource_id.as_ref(), alert.resource_id.as_ref())
    }
}

impl Store {
    /// Returns the alerts that an engine continues with.
    pub fn alert_records(&self) -> Result<Stored, Error> {
        let txn = self.db.begin_read().map_err(failed())?;
        let oldest = self.clock.now().checked_sub(LONGEST_COOLDOWN).unwrap_or(Timestamp::MIN);
        let mut stored = Stored {
            records: Vec::new(),
            last_id: values::number(&txn, LAST_ID)?,
            last_sequence: values::number(&txn, LAST_SEQUENCE)?,
            last_stamp: Timestamp::MIN,
        };
        walk(&txn, RECORDS, |record: Record| {
            stored.last_stamp = stored.last_stamp.max(record.alert.first_seen);
            let is_muted = record.alert.muted_until.is_some();
            if is_muted || record.alert.resolved_at.is_none_or(|at| at >= oldest) {
                stored.records.push(record);
            }
            true
        })?;
        Ok(stored)
    }

    /// Stores changed alerts and new notifications.
    pub fn keep_alerts(&self, changes: &Changes) -> Result<(), Error> {
        let _held = self.writer.lock();
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        {
            let mut table = txn.open_table(RECORDS).map_err(failed())?;
            for (id, record) in &changes.records {
                table.insert(id, json(record).as_slice()).map_err(failed())?;
            }
            let mut numbers = txn.open_table(META).map_err(failed())?;
            if let Some(id) = changes.records.keys().last() {
                let known = numbers.get(LAST_ID).map_err(failed())?.map_or(0, |known| known.value());
                numbers.insert(LAST_ID, known.max(*id)).map_err(failed())?;
            }
            let mut table = txn.open_table(NOTIFICATIONS).map_err(failed())?;
            for notification in &changes.notifications {
                table.insert(notification.sequence, json(notification).as_slice()).map_err(failed())?;
            }
            if let Some(last) = changes.notifications.last() {
                numbers.insert(LAST_SEQUENCE, last.sequence).map_err(failed())?;
            }
        }
        txn.commit().map_err(Error::at("commit"))
    }

    /// Returns a page of the alerts, newest first, and the number of all that match the filter.
    pub fn alerts(
        &self,
        limit: usize,
        before: Option<PageEnd>,
        filter: &AlertFilter,
    ) -> Result<(Vec<Alert>, u64), Error> {
        let txn = self.db.begin_read().map_err(failed())?;
        let (mut page, mut total) = (Vec::new(), 0);
        walk(&txn, RECORDS, |Record { alert, .. }: Record| {
            if filter.matches(&alert) {
                total += 1;
                let is_older = match before {
                    None => true,
                    Some(PageEnd::Id(end)) => alert.id < end,
                    Some(PageEnd::Time(end)) => alert.first_seen < end,
                };
                if is_older && page.len() < limit {
                    page.push(alert);
                }
            }
            true
        })?;
        Ok((page, total))
    }

    /// Returns an alert.
    pub fn alert(&self, id: u64) -> Result<Option<Alert>, Error> {
        let txn = self.db.begin_read().map_err(failed())?;
        let Some(table) = existing(txn.open_table(RECORDS))? else { return Ok(None) };
        let value = table.get(id).map_err(failed())?;
        Ok(value
            .and_then(|value| serde_json::from_slice::<Record>(value.value()).ok())
            .map(|record| record.alert))
    }

    /// Returns the notifications after a sequence number, oldest first.
    pub fn alert_notifications_after(&self, sequence: u64, limit: usize) -> Result<Vec<Notification>, Error> {
        let txn = self.db.begin_read().map_err(failed())?;
        let Some(table) = existing(txn.open_table(NOTIFICATIONS))? else { return Ok(Vec::new()) };
        let rows = table.range(sequence.saturating_add(1)..).map_err(failed())?;
        let mut notifications = Vec::new();
        for row in rows.take(limit) {
            let (_, value) = row.map_err(failed())?;
            notifications.extend(serde_json::from_slice::<Notification>(value.value()).ok());
        }
        Ok(notifications)
    }

    /// Removes resolved alerts and notifications beyond the retention. Returns their number.
    pub fn trim_alerts(&self) -> Result<u64, Error> {
        let oldest = self.clock.now().checked_sub(alerts::RETENTION).unwrap_or(Timestamp::MIN);
        let txn = self.db.begin_read().map_err(failed())?;
        let (mut old_alerts, mut old_notifications) = (Vec::new(), Vec::new());
        let mut kept = 0;
        walk(&txn, RECORDS, |Record { alert, .. }: Record| {
            kept += 1;
            let is_beyond = alert.resolved_at.is_some_and(|at| at < oldest || kept > MAX_ROWS);
            old_alerts.extend(is_beyond.then_some(alert.id));
            true
        })?;
        kept = 0;
        walk(&txn, NOTIFICATIONS, |notification: Notification| {
            kept += 1;
            let is_beyond = notification.at < oldest || kept > MAX_ROWS;
            old_notifications.extend(is_beyond.then_some(notification.sequence));
            true
        })?;
        drop(txn);
        let removed = old_alerts.len() + old_notifications.len();
        if removed > 0 {
            let _held = self.writer.lock();
            let txn = self.db.begin_vital().map_err(Error::at("begin to write"))?;
            for (definition, numbers) in [(RECORDS, old_alerts), (NOTIFICATIONS, old_notifications)] {
                let mut table = txn.open_table(definition).map_err(failed())?;
                for number in numbers {
                    table.remove(number).map_err(failed())?;
                }
            }
            txn.commit().map_err(Error::at("commit"))?;
        }
        Ok(removed as u64)
    }
}

/// Calls the function with the values of a table, newest first, until it returns `false`. An unreadable value is skipped:
/// it must not hide the others.
fn walk<T: DeserializeOwned>(
    txn: &ReadTransaction,
    definition: TableDefinition<'static, u64, &'static [u8]>,
    mut take: impl FnMut(T) -> bool,
) -> Result<(), Error> {
    let Some(table) = existing(txn.open_table(definition))? else { return Ok(()) };
    for row in table.iter().map_err(failed())?.rev() {
        let (id, value) = row.map_err(failed())?;
        match serde_json::from_slice(value.value()) {
            Ok(value) => {
                if !take(value) {
                    break;
                }
            }
            Err(error) => tracing::warn!(id = id.value(), %error, "skipped an unreadable alert"),
        }
    }
    Ok(())
}

/// Returns a table, or `None` if nothing was ever written to it.
fn existing<T>(opened: Result<T, TableError>) -> Result<Option<T>, Error> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(failed()(error)),
    }
}

fn failed<E: Into<redb::Error>>() -> impl Fn(E) -> Error {
    Error::at("read or write the alerts")
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("a record is a struct with string keys")
}

#[cfg(test)]
mod tests;
