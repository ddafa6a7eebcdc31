//! Dead-man switch, wiping, the vault, secrets at rest, post-quantum posture.

use crate::table::Method::{Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    super::pq_crypto::rows(t);
    t.unsupported(
        "the dead-man switch, vault, secrets encryption and proxy hand-over, which this version does not have",
        &[
            (Get, "/system/deadman"),
            (Put, "/system/deadman"),
            (Post, "/system/wipe"),
            (Get, "/storage/encrypted"),
            (Post, "/storage/encrypted/setup"),
            (Post, "/storage/encrypted/teardown"),
            (Get, "/secrets"),
            (Get, "/secrets/encryption-status"),
            (Post, "/secrets/set-passphrase"),
            (Post, "/secrets/clear-passphrase"),
            (Get, "/tproxy/status"),
        ],
    );
}
