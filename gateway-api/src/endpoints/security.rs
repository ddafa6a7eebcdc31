//! Dead-man switch, wiping, the vault, secrets at rest, post-quantum posture.

use gateway_model::capability::Capability;

use crate::table::Method::{Get, Post};
use crate::table::Table;

mod deadman;
mod secrets;

pub fn rows(t: &mut Table) {
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
