//! Changes of the outbox that the store has to write in one transaction.

use super::delivery::{Delivery, OpenAlert};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub put: Vec<Delivery>,
    pub removed: Vec<u64>,
    pub opened: Vec<OpenAlert>,
    pub closed: Vec<OpenAlert>,
    pub cursor: Option<u64>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }

    /// Notes that a delivery is gone, perhaps before it was written.
    pub(super) fn remove(&mut self, number: u64) {
        self.put.retain(|delivery| delivery.number != number);
        self.removed.push(number);
    }

    /// Adds later changes. A delivery or an alert that is in both has the state of the later ones.
    pub fn extend(&mut self, later: Changes) {
        later.removed.iter().for_each(|number| self.put.retain(|delivery| delivery.number != *number));
        let is_new = |delivery: &Delivery| later.put.iter().any(|other| other.number == delivery.number);
        self.put.retain(|delivery| !is_new(delivery));
        self.closed.retain(|open| !later.opened.contains(open));
        self.opened.retain(|open| !later.closed.contains(open));
        self.put.extend(later.put);
        self.removed.extend(later.removed);
        self.opened.extend(later.opened);
        self.closed.extend(later.closed);
        self.cursor = later.cursor.or(self.cursor);
    }
}
