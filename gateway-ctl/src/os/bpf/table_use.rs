//! Fill of a table of the dataplane.

/// Entries of a table, and how many it can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUse {
    pub entries: u64,
    pub capacity: u64,
}
