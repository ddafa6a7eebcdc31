//! Dead-man switch, wiping, the vault, secrets at rest, post-quantum posture.

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
        "the vault, which this version does not have",
        &[
            (Get, "/storage/encrypted"),
            (Post, "/storage/encrypted/setup"),
            (Post, "/storage/encrypted/teardown"),
        ],
    );
}
