//! Publications: the state of one kind of a gateway, signed for all who may have it.
//!
//! A hub keeps the last one of each subject. It has what a reply to a pull has; only the request that it would answer is
//! missing, so a receiver orders publications by their revisions.

use std::collections::BTreeMap;

use gateway_model::kinds::SyncKind;
use gateway_model::validated::PublicKey;
use serde::{Deserialize, Serialize};

use super::nkey::user_nkey;
use crate::federation::message::{KindOffer, MessageError, parse};

/// First token of all subjects.
pub const SUBJECT_PREFIX: &str = "gwfed";
/// Stream of JetStream that keeps the last message of each subject.
pub const STREAM: &str = "GATEWAY_FEDERATION";

/// State of one kind, as its owner publishes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    pub schema: u32,
    /// Stable id of the installation that publishes.
    pub node_id: String,
    /// Version of its daemon.
    pub version: String,
    pub kind: SyncKind,
    /// Revisions of all kinds that it publishes, at the same time.
    pub heads: BTreeMap<SyncKind, u64>,
    /// The kind. Without objects if they are too many for the hub: a receiver then pulls them.
    pub offer: KindOffer,
}

impl Publication {
    pub fn parse(payload: &str) -> Result<Publication, MessageError> {
        parse(payload)
    }
}

/// Returns the subject of a kind of the gateway with this key.
pub fn subject(kind: SyncKind, key: PublicKey) -> String {
    format!("{SUBJECT_PREFIX}.{kind}.{}", user_nkey(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::federation::message::SCHEMA;

    #[test]
    fn a_subject_is_of_one_kind_and_one_key() {
        let subject = subject(SyncKind::DeviceGroups, PublicKey([7; 32]));
        let tokens: Vec<&str> = subject.split('.').collect();
        assert_eq!(tokens[..2], ["gwfed", "device_groups"]);
        assert_eq!(tokens[2].len(), 56);
    }

    proptest! {
        #[test]
        fn publications_are_read_back_as_they_were(
            revision in any::<u64>(),
            node_id in "[a-z0-9-]{0,40}",
            hash in "[0-9a-f]{0,64}",
        ) {
            let (kind, version) = (SyncKind::Devices, "1".to_owned());
            let offer = KindOffer { revision, hash, objects: None };
            let heads = BTreeMap::from([(kind, revision)]);
            let publication = Publication { schema: SCHEMA, node_id, version, kind, heads, offer };
            let text = serde_json::to_string(&publication).unwrap();
            prop_assert_eq!(Publication::parse(&text), Ok(publication));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}|\\{\"schema\":1,\"kind\":\"[a-z]{3,7}\",\"heads\":\\{\\}\\}") {
            let _ = Publication::parse(&text);
        }
    }
}
