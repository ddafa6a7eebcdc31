//! Dead-man switch, wiping, vault, secrets at rest, post-quantum key exchange.

use crate::table::Table;

mod deadman;
mod secrets;

pub(super) fn rows(t: &mut Table) {
    super::pq_crypto::rows(t);
    deadman::rows(t);
    secrets::rows(t);
    super::proxies::status_rows(t);
    super::encrypted_storage::rows(t);
}
