//! Service parameters of HTTPS and SVCB records (RFC 9460, section 2.2) without the keys of Encrypted ClientHello
//! (RFC 9848).

use gateway_core::dns::Record;

use super::rtype;

const MANDATORY: u16 = 0;
const ECH: u16 = 5;

/// Removes the `ech` parameters, and the signatures that no longer hold. Returns whether there were any.
pub(crate) fn strip_ech(records: &mut Vec<Record>) -> bool {
    let mut is_stripped = false;
    for record in records.iter_mut().filter(|record| matches!(record.rtype, rtype::HTTPS | rtype::SVCB)) {
        if let Some(rdata) = without_ech(&record.rdata) {
            record.rdata = rdata.into();
            is_stripped = true;
        }
    }
    if is_stripped {
        let covered = |record: &Record| record.rdata.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
        let is_void = |record: &Record| {
            record.rtype == rtype::RRSIG && matches!(covered(record), Some(rtype::HTTPS | rtype::SVCB))
        };
        records.retain(|record| !is_void(record));
    }
    is_stripped
}

/// Returns the data of a record without `ech`. `None` if it has none, or is malformed.
fn without_ech(rdata: &[u8]) -> Option<Vec<u8>> {
    let target = target_length(rdata.get(2..)?)?;
    let (head, mut params) = rdata.split_at_checked(2 + target)?;
    let mut kept = head.to_vec();
    let mut is_found = false;
    while !params.is_empty() {
        let (key, rest) = params.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        params = rest;
        match u16::from_be_bytes(*key) {
            ECH => is_found = true,
            // A client ignores a record without a parameter that this list has.
            MANDATORY => {
                let keys: Vec<u8> =
                    value.chunks(2).filter(|key| *key != ECH.to_be_bytes()).flatten().copied().collect();
                if !keys.is_empty() {
                    kept.extend(MANDATORY.to_be_bytes());
                    kept.extend(u16::try_from(keys.len()).ok()?.to_be_bytes());
                    kept.extend(keys);
                }
            }
            _ => {
                kept.extend(key);
                kept.extend(length);
                kept.extend(value);
            }
        }
    }
    is_found.then_some(kept)
}

/// Returns the length of the uncompressed name at the beginning.
fn target_length(mut rest: &[u8]) -> Option<usize> {
    let mut length = 0;
    loop {
        let (label, after) = rest.split_first()?;
        length += 1 + usize::from(*label);
        if *label == 0 {
            return Some(length);
        }
        rest = after.get(usize::from(*label)..)?;
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::dns::Name;
    use gateway_model::domain::DomainName;
    use proptest::prelude::*;

    use super::*;

    const HEAD: [u8; 6] = [0, 1, 2, b'a', b'b', 0];
    const ALPN: [u8; 7] = [0, 1, 0, 3, 2, b'h', b'3'];
    const KEYS: [u8; 6] = [0, 5, 0, 2, 9, 9];

    #[test]
    fn the_keys_go_and_the_rest_stays() {
        let with = |params: &[&[u8]]| [&HEAD[..], &params.concat()].concat();
        assert_eq!(without_ech(&with(&[&ALPN, &KEYS])), Some(with(&[&ALPN])));
        assert_eq!(without_ech(&with(&[&ALPN])), None);
        let both = [0, 0, 0, 4, 0, 1, 0, 5];
        assert_eq!(without_ech(&with(&[&both, &ALPN, &KEYS])), Some(with(&[&[0, 0, 0, 2, 0, 1], &ALPN])));
        let only = [0, 0, 0, 2, 0, 5];
        assert_eq!(without_ech(&with(&[&only, &ALPN, &KEYS])), Some(with(&[&ALPN])));
        // An alias has no parameters.
        assert_eq!(without_ech(&HEAD), None);
    }

    #[test]
    fn a_signature_goes_with_what_it_signed() {
        let name = Name::from(&DomainName::parse("a").expect("a name"));
        let record =
            |rtype: u16, rdata: Vec<u8>| Record { name: name.clone(), rtype, ttl: 60, rdata: rdata.into() };
        let keys = record(rtype::HTTPS, [&HEAD[..], &KEYS].concat());
        let of_https = record(rtype::RRSIG, vec![0, 65, 13, 1]);
        let of_a = record(rtype::RRSIG, vec![0, 1, 13, 1]);
        let mut records = vec![keys, of_https, of_a.clone()];
        assert!(strip_ech(&mut records));
        assert_eq!((records.len(), records[1].rdata.clone()), (2, of_a.rdata));
        assert!(!strip_ech(&mut records));
    }

    proptest! {
        #[test]
        fn any_data_is_read_without_a_panic(rdata in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(kept) = without_ech(&rdata) {
                prop_assert!(kept.len() + 4 <= rdata.len());
                prop_assert_eq!(without_ech(&kept), None);
            }
        }
    }
}
