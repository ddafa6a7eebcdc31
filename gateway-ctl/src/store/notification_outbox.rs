//! Outbox of notifications: deliveries that receivers have not accepted, and what was taken in so far.
//!
//! It is no configuration, so its changes have no audit entry. A rollback leaves it alone.

use std::sync::PoisonError;

use gateway_core::notifications::outbox::{Changes, Delivery, OpenAlert, Outbox};
use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction};
use serde::de::DeserializeOwned;

use super::Store;
use super::error::Error;
use super::schema::META;
use super::values;

/// Number of the delivery to its JSON.
const DELIVERIES: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new(super::wipe::NOTIFICATION_OUTBOX);
/// JSON of an alert at a receiver that got its beginning. The value is the same, which other tables of texts have, too.
const OPEN: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new(super::wipe::NOTIFIED_ALERTS);
/// Key of the table `meta`: sequence of the last notification that was taken in.
const CURSOR: &str = "notification_cursor";

const READ: &str = "read the outbox of notifications";
const WRITE: &str = "write the outbox of notifications";

impl Store {
    /// Returns the stored outbox. Leaves out rows that cannot be read.
    pub fn notification_outbox(&self) -> Result<Outbox, Error> {
        let txn = self.db.begin_read().map_err(Error::at(READ))?;
        let cursor = values::number(&txn, CURSOR)?;
        let mut deliveries: Vec<Delivery> = Vec::new();
        if let Some(table) = table(&txn, DELIVERIES)? {
            for row in table.iter().map_err(Error::at(READ))? {
                deliveries.extend(parsed(row.map_err(Error::at(READ))?.1.value()));
            }
        }
        let mut open: Vec<OpenAlert> = Vec::new();
        if let Some(table) = table(&txn, OPEN)? {
            for row in table.iter().map_err(Error::at(READ))? {
                open.extend(parsed(row.map_err(Error::at(READ))?.1.value()));
            }
        }
        Ok(Outbox::restore(cursor, deliveries, open))
    }

    /// Writes changes of the outbox in one transaction.
    pub fn write_notification_outbox(&self, changes: &Changes) -> Result<(), Error> {
        let _held = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let txn = self.db.begin_write().map_err(Error::at(WRITE))?;
        write(&txn, changes)?;
        txn.commit().map_err(Error::at(WRITE))
    }
}

fn table<K: redb::Key + 'static, V: redb::Value + 'static>(
    txn: &ReadTransaction,
    definition: TableDefinition<'static, K, V>,
) -> Result<Option<redb::ReadOnlyTable<K, V>>, Error> {
    match txn.open_table(definition) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(Error::at(READ)(error)),
    }
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}

fn write(txn: &WriteTransaction, changes: &Changes) -> Result<(), Error> {
    let mut deliveries = txn.open_table(DELIVERIES).map_err(Error::at(WRITE))?;
    for number in &changes.removed {
        deliveries.remove(number).map_err(Error::at(WRITE))?;
    }
    for delivery in &changes.put {
        let json = serde_json::to_vec(delivery).expect("a delivery is a struct with string keys");
        deliveries.insert(delivery.number, json.as_slice()).map_err(Error::at(WRITE))?;
    }
    let mut open = txn.open_table(OPEN).map_err(Error::at(WRITE))?;
    let json =
        |alert: &OpenAlert| serde_json::to_string(alert).expect("an alert is a struct with string keys");
    for alert in &changes.closed {
        open.remove(json(alert).as_str()).map_err(Error::at(WRITE))?;
    }
    for alert in &changes.opened {
        let json = json(alert);
        open.insert(json.as_str(), json.as_bytes()).map_err(Error::at(WRITE))?;
    }
    if let Some(cursor) = changes.cursor {
        let mut numbers = txn.open_table(META).map_err(Error::at(WRITE))?;
        numbers.insert(CURSOR, cursor).map_err(Error::at(WRITE))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use gateway_core::notifications::outbox::{Outcome, Settled};
    use gateway_core::notifications::receivers::Receiver;
    use gateway_core::notifications::{Notification, Transition, test_alert};
    use jiff::Timestamp;

    use super::*;
    use crate::clock::SystemClock;
    use crate::store::AuditTicket;

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn notification(sequence: u64, transition: Transition) -> Notification {
        Notification { sequence, transition, is_consequence: false, alert: test_alert(now()) }
    }

    #[test]
    fn outbox_survives_a_restart_and_no_wipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let store = Store::open(&path, SystemClock::shared()).unwrap();
        let mut outbox = store.notification_outbox().unwrap();
        assert_eq!((outbox.cursor(), outbox.len()), (0, 0));
        for (sequence, transition) in
            [(1, Transition::Firing), (2, Transition::Resolved), (3, Transition::Firing)]
        {
            let changes = outbox.take_in(&notification(sequence, transition), &[Receiver::Webhook], now());
            store.write_notification_outbox(&changes).unwrap();
        }
        let failed = Outcome::Failed { error: "no reply".into(), retry_after: None };
        for (number, outcome) in [(1, Outcome::Accepted), (2, failed)] {
            let (settled, changes) = outbox.settle(number, &outcome, 5, now(), 0.5).unwrap();
            assert_ne!(settled, Settled::GivenUp);
            store.write_notification_outbox(&changes).unwrap();
        }
        drop(store);
        let store = Store::open(&path, SystemClock::shared()).unwrap();
        let mut restored = store.notification_outbox().unwrap();
        assert_eq!((restored.cursor(), restored.len()), (3, 2));
        assert_eq!((restored.get(2), restored.get(3)), (outbox.get(2), outbox.get(3)));
        // The alert is open at the receiver, so it gets the end.
        restored.take_in(&notification(4, Transition::Resolved), &[], now());
        assert_eq!(restored.len(), 3);
        store.wipe(AuditTicket::system("wipe_soft", "system"), false).unwrap();
        let mut wiped = store.notification_outbox().unwrap();
        wiped.take_in(&notification(5, Transition::Resolved), &[], now());
        assert_eq!(wiped.len(), 0);
    }
}
