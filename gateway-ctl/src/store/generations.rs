//! Numbers of plans that may have been used, so that a plan has the same number as no earlier one.
//!
//! The kernel counts the plans of a boot. A number must not return after the next boot either: records of decisions name it.

use redb::ReadableTable;

use super::Store;
use super::error::Error;
use super::schema::META;
use super::values::number;

/// Key of the table `meta`.
const RESERVED: &str = "generations_reserved";

impl Store {
    /// Returns the number up to which plans may have been numbered.
    pub fn reserved_generations(&self) -> Result<u32, Error> {
        let txn = self.db.begin_read().map_err(Error::at("begin to read"))?;
        Ok(u32::try_from(number(&txn, RESERVED)?).unwrap_or(u32::MAX))
    }

    /// Reserves the numbers up to this one. It is no change of the configuration, so it has no audit entry.
    pub fn reserve_generations(&self, until: u32) -> Result<(), Error> {
        let _held = self.writer.lock();
        let txn = self.db.begin_vital().map_err(Error::at("begin to write"))?;
        {
            let mut numbers = txn.open_table(META).map_err(Error::at("write"))?;
            let have = numbers.get(RESERVED).map_err(Error::at("write"))?.map_or(0, |have| have.value());
            numbers.insert(RESERVED, have.max(until.into())).map_err(Error::at("write"))?;
        }
        txn.commit().map_err(Error::at("commit"))
    }
}
