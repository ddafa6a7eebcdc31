//! Exchanging secrets where they stand in the stored rows of snapshots.
//!
//! A value that cannot be opened is left as it is and counted: it was lost with an earlier passphrase, and must not
//! keep the secrets of the present configuration from being sealed under another.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::secret::Open;
use gateway_model::secrets::visit_stored;
use redb::WriteTransaction;

use super::reencrypt::in_parallel;
use super::{Vault, has_sealed_form};
use crate::store::error::Error;
use crate::store::snapshots;

/// What became of the values in snapshots. A value that stands in many of them counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    pub exchanged: usize,
    pub unreadable: usize,
    /// Snapshots that cannot be read at all.
    pub damaged: usize,
}

enum SealedSecret {
    Same,
    Exchanged(String),
    Unreadable,
}

/// Exchanges what `old` sealed and what is in clear for what `new` seals, or for clear text without one. `known` has
/// what was exchanged in the rows, which stands in most snapshots as well.
pub fn reseal_snapshots(
    txn: &WriteTransaction,
    old: Option<&Vault>,
    new: Option<&Vault>,
    mut known: BTreeMap<String, String>,
) -> Result<Resealed, Error> {
    let mut found = BTreeSet::new();
    let damaged = snapshots::rewrite(txn, |collection, row| {
        visit_stored(collection, row, &mut |text| {
            if !text.is_empty() {
                found.insert(text.clone());
            }
        });
        false
    })?;
    let mut done = Resealed { damaged: damaged.len(), ..Resealed::default() };
    let (ready, left): (Vec<String>, Vec<String>) =
        found.into_iter().partition(|text| known.contains_key(text));
    done.exchanged = ready.len();
    let made = in_parallel(&left, |text| make(text, old, new));
    for (text, made) in left.into_iter().zip(made) {
        match made {
            SealedSecret::Same => {}
            SealedSecret::Exchanged(exchanged) => {
                done.exchanged += 1;
                known.insert(text, exchanged);
            }
            SealedSecret::Unreadable => done.unreadable += 1,
        }
    }
    if done.exchanged > 0 {
        snapshots::rewrite(txn, |collection, row| {
            let mut changed = false;
            visit_stored(collection, row, &mut |text| {
                if let Some(exchanged) = known.get(text.as_str()) {
                    text.clone_from(exchanged);
                    changed = true;
                }
            });
            changed
        })?;
    }
    if done.unreadable > 0 {
        tracing::warn!(
            values = done.unreadable,
            "snapshots hold secrets that an earlier passphrase sealed; they are left as they are"
        );
    }
    if !damaged.is_empty() {
        tracing::error!(snapshots = ?damaged, "damaged snapshots are left as they are");
    }
    Ok(done)
}

fn make(text: &str, old: Option<&Vault>, new: Option<&Vault>) -> SealedSecret {
    let opened = if has_sealed_form(text) {
        let Some(clear) = old.and_then(|old| old.open(text)) else {
            // A passphrase of earlier may have come back.
            let opens = new.is_some_and(|new| new.open(text).is_some());
            return if opens { SealedSecret::Same } else { SealedSecret::Unreadable };
        };
        Some(clear)
    } else {
        None
    };
    let clear = opened.as_ref().map_or(text, |clear| clear.as_str());
    match (new, &opened) {
        (Some(new), _) => new.seal_text(clear).map_or(SealedSecret::Unreadable, SealedSecret::Exchanged),
        (None, Some(_)) => SealedSecret::Exchanged(clear.to_owned()),
        (None, None) => SealedSecret::Same,
    }
}
