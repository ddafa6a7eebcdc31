//! Signatures of the local signed zones. A signature is made when its RRset changes, and again before it expires.
//!
//! Signatures are cached, so a rebuild of a zone signs only changed RRsets. Expiration times differ, so signatures are
//! never renewed all at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use gateway_core::dns::zones::{Sign, UnsignedSet};
use gateway_model::kinds::{DnsZone, zone_key};
use gateway_model::{Id, State};
use hashbrown::HashMap;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// Age of the inception time of a new signature, because clocks of validators may be behind.
const BEFORE: i64 = 3 * HOUR;
/// Minimum validity of a signature; the actual one is longer by up to `EXPIRY_SPREAD_SECONDS`.
const VALIDITY: i64 = 14 * DAY;
const EXPIRY_SPREAD_SECONDS: i64 = 2 * DAY;
/// Remaining validity at which a signature is renewed.
const LEFT: i64 = 5 * DAY;

type Digest = [u8; 32];

/// Cache of signatures. Clones are handles.
#[derive(Clone, Default)]
pub struct Signatures(Arc<Mutex<SignedZone>>);

#[derive(Default)]
struct SignedZone {
    by_digest: HashMap<Digest, Signature>,
    /// Number of builds of the zones.
    round: u64,
}

struct Signature {
    /// Data of the RRSIG record.
    wire: Vec<u8>,
    inception: i64,
    expiration: i64,
    /// Last build that used the signature.
    round: u64,
}

impl Signature {
    /// Reports whether the signature is usable: not close to its expiration, and not from the future after a change of
    /// the clock.
    fn holds(&self, now: i64) -> bool {
        self.inception <= now && now < self.expiration - LEFT
    }
}

/// Keys and time of the current build of zones.
pub struct Signer {
    keys: BTreeMap<Id, Key>,
    now: i64,
    made: Signatures,
}

struct Key {
    pair: EcdsaKeyPair,
    dnskey: Vec<u8>,
    tag: u16,
}

impl Key {
    fn of(zone: &DnsZone) -> Option<Key> {
        let public = zone_key::public(&zone.signing_key)?;
        // Uncompressed point: both coordinates follow.
        let point = [&[4], &public[..]].concat();
        let secret = zone.signing_key.key()?;
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair =
            EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret.as_slice(), &point).ok()?;
        let dnskey = zone_key::dnskey(&public);
        Some(Key { pair, tag: zone_key::tag(&dnskey), dnskey })
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

impl Signatures {
    fn made(&self) -> MutexGuard<'_, SignedZone> {
        self.0.lock()
    }

    /// Returns a signer for zones that are built from this state at this time. Drops signatures that the last build did
    /// not use.
    pub fn signer(&self, state: &State, now: Timestamp) -> Signer {
        let signed = state.dns_zones.iter().filter(|zone| zone.enabled && zone.is_signed());
        let keys = signed.filter_map(|zone| {
            let key = Key::of(zone);
            if key.is_none() {
                tracing::warn!(zone = zone.name.as_str(), "zone is not signed: no readable key");
            }
            Some((zone.meta.id, key?))
        });
        let keys = keys.collect();
        let mut made = self.made();
        let last = made.round;
        made.by_digest.retain(|_, signature| signature.round == last);
        made.round += 1;
        drop(made);
        Signer { keys, now: now.as_second(), made: self.clone() }
    }

    /// Reports whether zones must be rebuilt because a signature is close to its expiration.
    pub fn are_due(&self, now: Timestamp) -> bool {
        let made = self.made();
        let wanted = made.by_digest.values().filter(|signature| signature.round == made.round);
        wanted.into_iter().any(|signature| !signature.holds(now.as_second()))
    }
}

impl Sign for Signer {
    fn dnskey(&self, zone: Id) -> Option<Vec<u8>> {
        self.keys.get(&zone).map(|key| key.dnskey.clone())
    }

    fn sign(&self, zone: Id, set: &UnsignedSet<'_>) -> Option<Vec<u8>> {
        let key = self.keys.get(&zone)?;
        let digest = digest(key, set);
        let mut made = self.made.made();
        let round = made.round;
        if let Some(signature) = made.by_digest.get_mut(&digest).filter(|signature| signature.holds(self.now))
        {
            signature.round = round;
            return Some(signature.wire.clone());
        }
        // The spread is uniform, and the same for the same RRset.
        let spread = i64::from(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
            % EXPIRY_SPREAD_SECONDS;
        let (inception, expiration) = (self.now - BEFORE, self.now + VALIDITY + spread);
        // Seconds in 32 bits that wrap around (RFC 4034, section 3.1.5).
        let mut wire = set.head(zone_key::ALGORITHM, key.tag, inception as u32, expiration as u32);
        let signed = [&wire, set.records].concat();
        let signature = key.pair.sign(&SystemRandom::new(), &signed).ok()?;
        wire.extend_from_slice(signature.as_ref());
        made.by_digest.insert(digest, Signature { wire: wire.clone(), inception, expiration, round });
        Some(wire)
    }
}

/// Returns a digest of all inputs of a signature except the time.
fn digest(key: &Key, set: &UnsignedSet<'_>) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(&key.dnskey);
    context.update(set.apex.wire());
    context.update(&set.rtype.to_be_bytes());
    context.update(&set.ttl.to_be_bytes());
    // Each record contains its owner and length.
    context.update(set.records);
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests;
