//! The encrypted channel of a client with the coordinator (ts2021): `Noise_IK_25519_ChaChaPoly_BLAKE2s` with a header
//! before each message. No I/O.
//!
//! The handshake is that of the Noise framework. Records differ from it: they count nonces in network byte order, and are
//! at most 4 096 bytes long with their header.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use thiserror::Error;

use crate::keys::{KeyPair, MachineKey};

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const RESPONSE_BODY: usize = 48;
/// Bytes of the answer to the first message: type, length, ephemeral key, authentication.
pub const RESPONSE_BYTES: usize = HEADER + RESPONSE_BODY;
const RECORD: u8 = 4;
/// Bytes of the first message: version, type, length, ephemeral key, encrypted machine key, authentication.
pub const INITIATION_BYTES: usize = 5 + INITIATION_BODY;
const INITIATION_BODY: usize = 96;
const HEADER: usize = 3;
const TAG: usize = 16;
const LONGEST_RECORD: usize = 4096;
/// Bytes of content in the longest record.
pub const LONGEST_CONTENT: usize = LONGEST_RECORD - HEADER - TAG;

/// A handshake or a record that breaks the protocol. It ends the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoiseError {
    #[error("the first message is no initiation")]
    NoInitiation,
    #[error("the coordinator does not answer with a response")]
    NoResponse,
    #[error("the handshake does not authenticate")]
    Handshake,
    #[error("the record has no valid header")]
    Header,
    #[error("the record does not authenticate")]
    Record,
    #[error("the session has used up its nonces")]
    Exhausted,
}

/// A session after the handshake.
#[derive(Debug)]
pub struct Session {
    /// The proven identity of the client.
    pub machine: MachineKey,
    /// The version of the protocol that the client speaks.
    pub version: u16,
    pub sealer: Sealer,
    pub opener: Opener,
}

/// A client that waits for the answer to its first message.
pub struct Initiator(snow::HandshakeState);

/// Begins a session of a machine with the coordinator that has this key. Returns the first message.
pub fn initiate(
    machine: &KeyPair,
    coordinator: MachineKey,
    version: u16,
) -> Result<(Vec<u8>, Initiator), NoiseError> {
    let prologue = prologue(version);
    let mut handshake = PATTERN
        .parse()
        .map(snow::Builder::new)
        .and_then(|builder| builder.prologue(prologue.as_bytes()))
        .and_then(|builder| builder.local_private_key(machine.expose()))
        .and_then(|builder| builder.remote_public_key(&coordinator.0))
        .and_then(snow::Builder::build_initiator)
        .map_err(|_| NoiseError::Handshake)?;
    let mut body = [0; INITIATION_BODY];
    let length = handshake.write_message(&[], &mut body).map_err(|_| NoiseError::Handshake)?;
    if length != INITIATION_BODY {
        return Err(NoiseError::Handshake);
    }
    let [high, low] = u16::try_from(length).map_err(|_| NoiseError::Handshake)?.to_be_bytes();
    Ok(([&version.to_be_bytes()[..], &[INITIATION, high, low], &body].concat(), Initiator(handshake)))
}

impl Initiator {
    /// Reads the answer. It authenticates the coordinator.
    pub fn finish(mut self, response: &[u8]) -> Result<(Sealer, Opener), NoiseError> {
        let (&[kind, high, low], body) = response.split_first_chunk().ok_or(NoiseError::NoResponse)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if kind != RESPONSE || length != RESPONSE_BODY || body.len() != length {
            return Err(NoiseError::NoResponse);
        }
        let read = self.0.read_message(body, &mut [0; RESPONSE_BODY]);
        if read.map_err(|_| NoiseError::Handshake)? != 0 {
            return Err(NoiseError::Handshake);
        }
        let (to_coordinator, from_coordinator) = self.0.dangerously_get_raw_split();
        Ok((Sealer(Direction::new(&to_coordinator)), Opener(Direction::new(&from_coordinator))))
    }
}

fn prologue(version: u16) -> String {
    format!("Tailscale Control Protocol v{version}")
}

/// Answers the first message of a client. Returns the message for the client, and the session.
pub fn answer(identity: &KeyPair, message: &[u8]) -> Result<(Vec<u8>, Session), NoiseError> {
    let (version, body) = initiation(message)?;
    let prologue = prologue(version);
    let mut handshake = PATTERN
        .parse()
        .map(snow::Builder::new)
        .and_then(|builder| builder.prologue(prologue.as_bytes()))
        .and_then(|builder| builder.local_private_key(identity.expose()))
        .and_then(snow::Builder::build_responder)
        .map_err(|_| NoiseError::Handshake)?;
    let mut content = [0; INITIATION_BODY];
    let length = handshake.read_message(body, &mut content).map_err(|_| NoiseError::Handshake)?;
    let machine = handshake.get_remote_static().and_then(|key| key.try_into().ok()).map(MachineKey);
    let machine = machine.filter(|_| length == 0).ok_or(NoiseError::Handshake)?;
    let mut response = [0; 64];
    let length = handshake.write_message(&[], &mut response).map_err(|_| NoiseError::Handshake)?;
    let (from_client, to_client) = handshake.dangerously_get_raw_split();
    let mut message = vec![RESPONSE];
    message.extend(u16::try_from(length).map_err(|_| NoiseError::Handshake)?.to_be_bytes());
    message.extend(&response[..length]);
    let session = Session {
        machine,
        version,
        sealer: Sealer(Direction::new(&to_client)),
        opener: Opener(Direction::new(&from_client)),
    };
    Ok((message, session))
}

fn initiation(message: &[u8]) -> Result<(u16, &[u8]), NoiseError> {
    let (head, body) = message.split_first_chunk::<5>().ok_or(NoiseError::NoInitiation)?;
    let [version @ .., kind, high, low] = *head;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if kind != INITIATION || length != INITIATION_BODY || body.len() != length {
        return Err(NoiseError::NoInitiation);
    }
    Ok((u16::from_be_bytes(version), body))
}

/// One direction of a session: its key, and the number of its next record.
struct Direction {
    cipher: ChaCha20Poly1305,
    next: u64,
}

impl Direction {
    fn new(key: &[u8; 32]) -> Self {
        Self { cipher: ChaCha20Poly1305::new(Key::from_slice(key)), next: 0 }
    }

    fn nonce(&mut self) -> Result<Nonce, NoiseError> {
        let number = self.next;
        self.next = number.checked_add(1).ok_or(NoiseError::Exhausted)?;
        let mut nonce = Nonce::default();
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        Ok(nonce)
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Direction({} records)", self.next)
    }
}

/// Encrypts records.
#[derive(Debug)]
pub struct Sealer(Direction);

impl Sealer {
    /// Appends a record with the first bytes of `content`. Returns how many bytes it took.
    pub fn seal(&mut self, content: &[u8], records: &mut Vec<u8>) -> Result<usize, NoiseError> {
        let taken = &content[..content.len().min(LONGEST_CONTENT)];
        let nonce = self.0.nonce()?;
        let sealed = self.0.cipher.encrypt(&nonce, taken).map_err(|_| NoiseError::Record)?;
        records.push(RECORD);
        records.extend(u16::try_from(sealed.len()).map_err(|_| NoiseError::Header)?.to_be_bytes());
        records.extend(sealed);
        Ok(taken.len())
    }
}

/// Decrypts records.
#[derive(Debug)]
pub struct Opener(Direction);

/// Bytes of the record at the start of `received`, or none if its header is incomplete.
pub fn record_bytes(received: &[u8]) -> Result<Option<usize>, NoiseError> {
    let Some((&[kind, high, low], _)) = received.split_first_chunk::<HEADER>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if kind != RECORD || !(TAG..=LONGEST_RECORD - HEADER).contains(&length) {
        return Err(NoiseError::Header);
    }
    Ok(Some(HEADER + length))
}

impl Opener {
    /// Decrypts a whole record, whose length [`record_bytes`] gives.
    pub fn open(&mut self, record: &[u8]) -> Result<Vec<u8>, NoiseError> {
        let body = record.get(HEADER..).ok_or(NoiseError::Header)?;
        let nonce = self.0.nonce()?;
        self.0.cipher.decrypt(&nonce, body).map_err(|_| NoiseError::Record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs() -> (KeyPair, KeyPair) {
        (KeyPair::of_secret([1; 32]), KeyPair::of_secret([2; 32]))
    }

    #[test]
    fn client_and_coordinator_agree() {
        let (identity, machine) = pairs();
        let (message, client) = initiate(&machine, MachineKey(identity.public()), 130).unwrap();
        assert_eq!(message.len(), INITIATION_BYTES);
        let (response, mut session) = answer(&identity, &message).unwrap();
        assert_eq!(response.len(), RESPONSE_BYTES);
        let (mut sealer, mut opener) = client.finish(&response).unwrap();
        assert_eq!((session.machine.0, session.version), (machine.public(), 130));
        for number in 0..3_u8 {
            let mut record = Vec::new();
            sealer.seal(&[number; 9], &mut record).unwrap();
            assert_eq!(record_bytes(&record).unwrap(), Some(record.len()));
            assert_eq!(session.opener.open(&record).unwrap(), [number; 9]);
            record.clear();
            session.sealer.seal(&[number; 5], &mut record).unwrap();
            assert_eq!(opener.open(&record).unwrap(), [number; 5]);
        }
    }

    #[test]
    fn long_content_is_cut_at_the_longest_record() {
        let mut sealer = Sealer(Direction::new(&[3; 32]));
        let mut records = Vec::new();
        assert_eq!(sealer.seal(&[1; 10_000], &mut records).unwrap(), LONGEST_CONTENT);
        assert_eq!(records.len(), LONGEST_RECORD);
    }

    #[test]
    fn nonces_count_in_network_byte_order() {
        let mut direction = Direction::new(&[3; 32]);
        direction.next = 0x0102;
        assert_eq!(direction.nonce().unwrap()[..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        direction.next = u64::MAX;
        assert_eq!(direction.nonce(), Err(NoiseError::Exhausted));
    }

    #[test]
    fn another_identity_or_version_does_not_authenticate() {
        let (identity, machine) = pairs();
        let (mut message, _) = initiate(&machine, MachineKey([5; 32]), 130).unwrap();
        assert_eq!(answer(&identity, &message).unwrap_err(), NoiseError::Handshake);
        (message, _) = initiate(&machine, MachineKey(identity.public()), 130).unwrap();
        message[1] = 131;
        assert_eq!(answer(&identity, &message).unwrap_err(), NoiseError::Handshake);
    }

    proptest! {
        #[test]
        fn changed_records_do_not_open(content: Vec<u8>, at: prop::sample::Index, bit in 0..8_u8) {
            let mut record = Vec::new();
            Sealer(Direction::new(&[3; 32])).seal(&content, &mut record).unwrap();
            let at = at.index(record.len());
            record[at] ^= 1 << bit;
            let mut opener = Opener(Direction::new(&[3; 32]));
            let whole = matches!(record_bytes(&record), Ok(Some(length)) if length == record.len());
            prop_assert!(!whole || opener.open(&record).is_err());
        }

        #[test]
        fn no_bytes_are_taken_for_a_handshake(message: Vec<u8>, body in prop::collection::vec(any::<u8>(), RESPONSE_BODY)) {
            prop_assert!(answer(&pairs().0, &message).is_err());
            for response in [message, [&[2, 0, 48][..], &body].concat()] {
                let (_, client) = initiate(&pairs().1, MachineKey(pairs().0.public()), 130).unwrap();
                prop_assert!(client.finish(&response).is_err());
            }
        }
    }
}
