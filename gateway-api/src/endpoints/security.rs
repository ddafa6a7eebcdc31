//! Dead-man switch, wiping, vault, secrets at rest, post-quantum key exchange.

use gateway_model::capability::Capability;

use crate::table::Method::{Get, Post};
use crate::table::Table;

mod deadman;
mod secrets;

pub(super) fn rows(t: &mut Table) {
    super::pq_crypto::rows(t);
    deadman::rows(t);
    secrets::rows(t);
    super::proxies::status_rows(t);
    t.unsupported(
        Capability::Vault,
        &[
            (Get, "/storage/encrypted"),
            (Post, "/storage/encrypted/setup"),
            (Post, "/storage/encrypted/teardown"),
        ],
    );
}
