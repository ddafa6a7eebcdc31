//! Key of an answer in the cache.

use gateway_core::dns::NameRef;

/// Fields that identify an answer in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    pub partition: u16,
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
    pub qtype: u16,
    pub name: NameRef<'a>,
}
