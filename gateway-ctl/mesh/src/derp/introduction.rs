//! The introductions at the start of a connection to the relay: each side seals a JSON text with the key of the other
//! (NaCl box), which proves that the client owns its key. No I/O.

use crypto_box::aead::Aead;
use crypto_box::{Nonce, PublicKey, SalsaBox, SecretKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::keys::{KeyPair, NodeKey};

const NONCE: usize = 24;
const PROTOCOL_VERSION: u32 = 2;
/// Longest sealed introduction that is read.
pub const LONGEST: usize = 4096;

/// An introduction that proves nothing. It ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IntroductionError {
    #[error("the introduction does not open with the key of the client")]
    Sealed,
    #[error("the introduction is no valid JSON text")]
    Json,
    #[error("no random numbers")]
    Random,
}

/// Introduction of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ClientInfo {
    /// Version of the relay protocol.
    #[serde(default)]
    pub version: u32,
}

#[derive(Serialize, Deserialize)]
struct ServerInfo {
    #[serde(default)]
    version: u32,
}

/// Introduction as a member writes it.
#[derive(Serialize)]
struct MemberInfo {
    version: u32,
    #[serde(rename = "CanAckPings")]
    can_ack_pings: bool,
}

/// Seals the introduction of a member for a relay.
pub fn seal_member(member: &KeyPair, relay: [u8; 32]) -> Result<Vec<u8>, IntroductionError> {
    let info = MemberInfo { version: PROTOCOL_VERSION, can_ack_pings: true };
    seal_text(member, NodeKey(relay), &serde_json::to_vec(&info).map_err(|_| IntroductionError::Json)?)
}

/// Opens the introduction of a relay, which proves that it owns its key.
pub fn open_relay(member: &KeyPair, relay: [u8; 32], sealed: &[u8]) -> Result<(), IntroductionError> {
    let text = open_text(member, NodeKey(relay), sealed)?;
    let ServerInfo { version: _ } = serde_json::from_slice(&text).map_err(|_| IntroductionError::Json)?;
    Ok(())
}

/// Opens the introduction of a client.
pub fn open(relay: &KeyPair, client: NodeKey, sealed: &[u8]) -> Result<ClientInfo, IntroductionError> {
    serde_json::from_slice(&open_text(relay, client, sealed)?).map_err(|_| IntroductionError::Json)
}

/// Seals the introduction of the relay.
pub fn seal(relay: &KeyPair, client: NodeKey) -> Result<Vec<u8>, IntroductionError> {
    let text = serde_json::to_vec(&ServerInfo { version: PROTOCOL_VERSION });
    seal_text(relay, client, &text.map_err(|_| IntroductionError::Json)?)
}

fn open_text(own: &KeyPair, other: NodeKey, sealed: &[u8]) -> Result<Vec<u8>, IntroductionError> {
    let (nonce, text) = sealed.split_first_chunk::<NONCE>().ok_or(IntroductionError::Sealed)?;
    if text.len() > LONGEST {
        return Err(IntroductionError::Sealed);
    }
    salsa_box(own, other).decrypt(Nonce::from_slice(nonce), text).map_err(|_| IntroductionError::Sealed)
}

fn seal_text(own: &KeyPair, other: NodeKey, text: &[u8]) -> Result<Vec<u8>, IntroductionError> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).map_err(|_| IntroductionError::Random)?;
    let sealed = salsa_box(own, other).encrypt(Nonce::from_slice(&nonce), text);
    Ok([&nonce[..], &sealed.map_err(|_| IntroductionError::Sealed)?].concat())
}

fn salsa_box(relay: &KeyPair, client: NodeKey) -> SalsaBox {
    SalsaBox::new(&PublicKey::from(client.0), &SecretKey::from(*relay.expose()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_owner_of_a_key_is_introduced() {
        let (relay, client) = (KeyPair::of_secret([1; 32]), KeyPair::of_secret([2; 32]));
        let key = NodeKey(client.public());
        let from_client = SalsaBox::new(&PublicKey::from(relay.public()), &SecretKey::from(*client.expose()));
        let sealed =
            from_client.encrypt(Nonce::from_slice(&[3; 24]), &br#"{"version":2,"CanAckPings":true}"#[..]);
        let sealed = [&[3; 24][..], &sealed.unwrap()].concat();
        assert_eq!(open(&relay, key, &sealed), Ok(ClientInfo { version: 2 }));
        assert_eq!(open(&relay, NodeKey([9; 32]), &sealed), Err(IntroductionError::Sealed));
        let answer = seal(&relay, key).unwrap();
        let (nonce, text) = answer.split_first_chunk::<24>().unwrap();
        assert_eq!(from_client.decrypt(Nonce::from_slice(nonce), text).unwrap(), br#"{"version":2}"#);
    }

    #[test]
    fn member_and_relay_introduce_themselves() {
        let (relay, member) = (KeyPair::of_secret([1; 32]), KeyPair::of_secret([2; 32]));
        let key = NodeKey(member.public());
        let sealed = seal_member(&member, relay.public()).unwrap();
        assert_eq!(open(&relay, key, &sealed), Ok(ClientInfo { version: 2 }));
        let answer = seal(&relay, key).unwrap();
        assert_eq!(open_relay(&member, relay.public(), &answer), Ok(()));
        assert_eq!(open_relay(&member, [9; 32], &answer), Err(IntroductionError::Sealed));
    }

    proptest! {
        #[test]
        fn no_bytes_introduce_a_client(key: [u8; 32], sealed: Vec<u8>) {
            prop_assert!(open(&KeyPair::of_secret([1; 32]), NodeKey(key), &sealed).is_err());
        }
    }
}
