//! Header of a container, as `cryptsetup luksDump --dump-json-metadata` prints it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Type of the tokens that systemd-cryptenroll writes for keys that a TPM seals.
pub(super) const TPM2_TOKEN: &str = "systemd-tpm2";

/// Key slots and cipher of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeHeader {
    pub cipher: String,
    /// In the order of their numbers.
    pub key_slots: Vec<KeySlot>,
    /// Numbers of the tokens of keys that a TPM seals.
    pub tpm2_tokens: Vec<u32>,
}

/// A slot with a copy of the volume key, which one passphrase or key opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeySlot {
    /// Number of the slot.
    pub slot: u32,
    /// Key derivation function, such as `argon2id`.
    pub kdf: String,
    /// A TPM of this host seals the key of the slot.
    pub is_tpm2: bool,
    /// PCRs of the TPM whose values must be those of the sealing. Empty unless a TPM seals the key.
    pub tpm2_pcrs: Vec<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    keyslots: BTreeMap<String, MetadataSlot>,
    tokens: BTreeMap<String, Token>,
    segments: BTreeMap<String, Segment>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetadataSlot {
    kdf: Kdf,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kdf {
    r#type: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Token {
    r#type: String,
    keyslots: Vec<String>,
    #[serde(rename = "tpm2-pcrs")]
    pcrs: Vec<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Segment {
    encryption: String,
}

impl VolumeHeader {
    /// Parses the metadata of a header. Slots whose number is none are left out.
    pub fn parse(json: &[u8]) -> Result<VolumeHeader, serde_json::Error> {
        let Metadata { keyslots, tokens, segments } = serde_json::from_slice(json)?;
        let is_sealed = |token: &&Token| token.r#type == TPM2_TOKEN;
        let seal_of =
            |slot: &String| tokens.values().filter(is_sealed).find(|one| one.keyslots.contains(slot));
        let mut key_slots: Vec<KeySlot> = keyslots
            .iter()
            .filter_map(|(number, slot)| {
                let (kdf, seal) = (slot.kdf.r#type.clone(), seal_of(number));
                let tpm2_pcrs = seal.map(|token| token.pcrs.clone()).unwrap_or_default();
                Some(KeySlot { slot: number.parse().ok()?, kdf, is_tpm2: seal.is_some(), tpm2_pcrs })
            })
            .collect();
        let sealed = tokens.iter().filter(|(_, token)| is_sealed(token));
        let tpm2_tokens = sealed.filter_map(|(number, _)| number.parse().ok()).collect();
        key_slots.sort_by_key(|slot| slot.slot);
        let cipher = segments.into_values().next().map(|segment| segment.encryption).unwrap_or_default();
        Ok(VolumeHeader { cipher, key_slots, tpm2_tokens })
    }

    /// Returns the lowest number without a slot.
    pub fn free_slot(&self) -> u32 {
        (0..).find(|number| self.key_slots.iter().all(|slot| slot.slot != *number)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRINTED: &str = r#"{"keyslots":{"10":{"type":"luks2","key_size":64,"kdf":{"type":"pbkdf2"}},
        "0":{"type":"luks2","key_size":64,"kdf":{"type":"argon2id","time":4}}},
        "tokens":{"0":{"type":"systemd-tpm2","keyslots":["10"],"tpm2-pcrs":[7]}},
        "segments":{"0":{"type":"crypt","offset":"16777216","encryption":"aes-xts-plain64"}},"digests":{},"config":{}}"#;

    #[test]
    fn slots_come_by_number_with_their_keys() {
        let header = VolumeHeader::parse(PRINTED.as_bytes()).expect("a header");
        let slot = |slot, kdf: &str, pcrs: &[u32]| {
            let (is_tpm2, tpm2_pcrs) = (!pcrs.is_empty(), pcrs.to_vec());
            KeySlot { slot, kdf: kdf.to_owned(), is_tpm2, tpm2_pcrs }
        };
        assert_eq!(header.key_slots, [slot(0, "argon2id", &[]), slot(10, "pbkdf2", &[7])]);
        assert_eq!(header.tpm2_tokens, [0]);
        assert_eq!((header.cipher.as_str(), header.free_slot()), ("aes-xts-plain64", 1));
    }

    #[test]
    fn an_erased_header_is_none() {
        VolumeHeader::parse(&[0; 64]).expect_err("no header");
        assert_eq!(VolumeHeader::parse(b"{}").expect("no slots"), VolumeHeader::default());
    }

    proptest! {
        #[test]
        fn damaged_headers_are_refused_or_read(cut in 0..PRINTED.len(), at in 0..PRINTED.len(), byte: u8) {
            let mut bytes = PRINTED.as_bytes()[..cut.max(1)].to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            // It must not panic.
            if let Ok(header) = VolumeHeader::parse(&bytes) {
                prop_assert!(header.key_slots.is_sorted_by_key(|slot| slot.slot));
            }
        }
    }
}
