//! Conversion of the secrets in the stored rows of snapshots.
//!
//! An unreadable value stays as it is and is counted. It was lost with an earlier passphrase, and must not prevent
//! the current configuration's secrets from being sealed with another one.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::secret::Open;
use gateway_model::secrets::visit_stored;
use redb::WriteTransaction;

use super::{Vault, has_sealed_form};
use crate::parallel::in_parallel;
use crate::store::error::Error;
use crate::store::snapshots;

/// Result for the values in snapshots. A value that occurs in many of them counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReencryptReport {
    pub exchanged: usize,
    pub unreadable: usize,
    /// Number of unreadable snapshots.
    pub damaged: usize,
}

enum SealedSecret {
    Same,
    Exchanged(String),
    Unreadable,
}

/// Converts values that are in clear or sealed by `old` into values sealed by `new`, or into clear text without
/// `new`. `known` maps the values already converted in the rows, most of which occur in snapshots as well.
pub(crate) fn reseal_snapshots(
    txn: &WriteTransaction,
    old: Option<&Vault>,
    new: Option<&Vault>,
    mut known: BTreeMap<String, String>,
) -> Result<ReencryptReport, Error> {
    let mut found = BTreeSet::new();
    let damaged = snapshots::rewrite(txn, |collection, row| {
        visit_stored(collection, row, &mut |text| {
            if !text.is_empty() {
                found.insert(text.clone());
            }
        });
        false
    })?;
    let mut done = ReencryptReport { damaged: damaged.len(), ..ReencryptReport::default() };
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
            "snapshots contain secrets sealed by an earlier passphrase: left unchanged"
        );
    }
    if !damaged.is_empty() {
        tracing::error!(snapshots = ?damaged, "left damaged snapshots unchanged");
    }
    Ok(done)
}

fn make(text: &str, old: Option<&Vault>, new: Option<&Vault>) -> SealedSecret {
    let opened = if has_sealed_form(text) {
        let Some(clear) = old.and_then(|old| old.open(text)) else {
            // An earlier passphrase may have been set again.
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
