//! Records of the lease journal. The last record of an address counts.
//!
//! A record is a mark, its length and checksum, and the lease. A reader that finds a damaged record continues at the
//! next mark: damage costs the records that it hit and no others. What a crash tore at the end was not acknowledged.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use gateway_model::MacAddr;

use super::lease::{Lease, LeaseState};

/// Begin of each record.
const MARK: [u8; 2] = [0xd4, 0x1e];
/// Mark, length of the body, and its checksum.
const HEAD: usize = 8;
/// Kind of a body: a lease of IPv4.
const LEASE_V4: u8 = 1;
/// Kind, address, MAC address, state and two times.
const FIXED: usize = 28;

/// Leases of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub leases: BTreeMap<Ipv4Addr, Lease>,
    pub records: usize,
    /// End of the last valid record.
    pub end: usize,
    /// Bytes that belong to no valid record. Zeros are space that is not written yet.
    pub damaged_bytes: usize,
}

/// Appends the record of a lease.
pub fn append(buffer: &mut Vec<u8>, lease: &Lease) {
    let start = buffer.len();
    buffer.extend(MARK);
    buffer.extend([0; HEAD - MARK.len()]);
    buffer.push(LEASE_V4);
    buffer.extend(lease.address.octets());
    buffer.extend(lease.mac.octets());
    buffer.push(match lease.state {
        LeaseState::Active => 1,
        LeaseState::Released => 2,
        LeaseState::Declined => 3,
    });
    buffer.extend(lease.starts.to_le_bytes());
    buffer.extend(lease.ends.to_le_bytes());
    let texts = [lease.hostname.as_deref(), lease.vendor_class.as_deref()];
    append_bytes(buffer, lease.client_id.as_deref());
    texts.into_iter().for_each(|text| append_bytes(buffer, text.map(str::as_bytes)));
    let (head, body) = buffer[start..].split_at_mut(HEAD);
    let length = u16::try_from(body.len()).expect("three fields of at most 255 bytes");
    head[2..4].copy_from_slice(&length.to_le_bytes());
    head[4..8].copy_from_slice(&checksum(length, body).to_le_bytes());
}

fn append_bytes(buffer: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let bytes = bytes.unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(255)];
    buffer.push(u8::try_from(bytes.len()).expect("at most 255"));
    buffer.extend(bytes);
}

fn checksum(length: u16, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Returns the leases of a journal, or of what is left of it.
pub fn recover(journal: &[u8]) -> Recovered {
    let mut recovered = Recovered::default();
    let mut at = 0;
    while at < journal.len() {
        if let Some((lease, length)) = read(&journal[at..]) {
            recovered.leases.insert(lease.address, lease);
            recovered.records += 1;
            at += length;
            recovered.end = at;
        } else {
            recovered.damaged_bytes += usize::from(journal[at] != 0);
            at += 1;
        }
    }
    recovered
}

/// Reads the record at the begin. Returns its lease and its length.
fn read(journal: &[u8]) -> Option<(Lease, usize)> {
    let (head, rest) = journal.split_first_chunk::<HEAD>()?;
    if head[..2] != MARK {
        return None;
    }
    let length = u16::from_le_bytes([head[2], head[3]]);
    let body = rest.get(..usize::from(length))?;
    let expected = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let is_valid = checksum(length, body) == expected;
    Some((lease(body)?, HEAD + body.len())).filter(|_| is_valid)
}

fn lease(body: &[u8]) -> Option<Lease> {
    let (fixed, mut rest) = body.split_first_chunk::<FIXED>()?;
    if fixed[0] != LEASE_V4 {
        return None;
    }
    let time = |at: usize| Some(i64::from_le_bytes(*fixed[at..].first_chunk()?));
    let mut bytes = || {
        let (length, after) = rest.split_first()?;
        let bytes = after.get(..usize::from(*length))?;
        rest = &after[bytes.len()..];
        Some(bytes)
    };
    let (client_id, hostname, vendor_class) = (bytes()?, bytes()?, bytes()?);
    let given = |bytes: &[u8]| (!bytes.is_empty()).then(|| bytes.into());
    let text = |bytes: &[u8]| (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into());
    Some(Lease {
        address: Ipv4Addr::from(*fixed[1..].first_chunk::<4>()?),
        mac: MacAddr(*fixed[5..].first_chunk()?),
        state: match fixed[11] {
            1 => LeaseState::Active,
            2 => LeaseState::Released,
            3 => LeaseState::Declined,
            _ => return None,
        },
        starts: time(12)?,
        ends: time(20)?,
        client_id: given(client_id),
        hostname: text(hostname),
        vendor_class: text(vendor_class),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leases() -> impl Strategy<Value = Vec<Lease>> {
        let state =
            prop::sample::select(vec![LeaseState::Active, LeaseState::Released, LeaseState::Declined]);
        let id = prop::option::of(prop::collection::vec(any::<u8>(), 1..255));
        let text = prop::option::of("[ -~]{1,60}");
        let lease = (any::<u8>(), any::<[u8; 6]>(), state, any::<(i64, i64)>(), id, text);
        let lease = lease.prop_map(|(host, mac, state, (starts, ends), id, text)| Lease {
            address: Ipv4Addr::new(192, 0, 2, host),
            mac: MacAddr(mac),
            client_id: id.map(Into::into),
            hostname: text.clone().map(Into::into),
            vendor_class: text.map(Into::into),
            starts,
            ends,
            state,
        });
        prop::collection::vec(lease, 1..12)
    }

    fn journal(leases: &[Lease]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for lease in leases {
            append(&mut bytes, lease);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn last_of_each(leases: &[Lease]) -> BTreeMap<Ipv4Addr, Lease> {
        leases.iter().map(|lease| (lease.address, lease.clone())).collect()
    }

    proptest! {
        /// A crash leaves any part of what was written after the last synchronisation.
        #[test]
        fn leases_before_a_crash_survive_it(leases in leases(), synced in 0usize..12, cut in any::<prop::sample::Index>(), hole in any::<bool>()) {
            let (mut bytes, ends) = journal(&leases);
            let synced = synced.min(leases.len());
            let cut = ends[synced] + cut.index(bytes.len() - ends[synced] + 1);
            if hole {
                // Pages may reach the disk in any order.
                bytes[ends[synced]..cut].fill(0);
            } else {
                bytes.truncate(cut);
            }
            let recovered = recover(&bytes);
            let unsynced: BTreeMap<_, Vec<&Lease>> = leases[synced..].iter().fold(BTreeMap::new(), |mut all, lease| {
                all.entry(lease.address).or_insert_with(Vec::new).push(lease);
                all
            });
            for (address, lease) in last_of_each(&leases[..synced]) {
                let found = &recovered.leases[&address];
                let is_newer = unsynced.get(&address).is_some_and(|newer| newer.contains(&found));
                prop_assert!(*found == lease || is_newer);
            }
        }

        #[test]
        fn damage_costs_the_records_that_it_hits(leases in leases(), at in any::<prop::sample::Index>(), bits in 1u8..) {
            let (mut bytes, ends) = journal(&leases);
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            let hit = ends.iter().rposition(|end| *end <= at).unwrap();
            let others: Vec<Lease> =
                leases.iter().enumerate().filter(|(index, _)| *index != hit).map(|(_, lease)| lease.clone()).collect();
            prop_assert_eq!(recover(&bytes).leases, last_of_each(&others));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let recovered = recover(&[&MARK[..], &bytes].concat());
            prop_assert!(recovered.records == 0 || recovered.damaged_bytes < bytes.len());
        }
    }
}
