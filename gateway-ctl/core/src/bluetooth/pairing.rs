//! Pairing: one at a time, each confirmed by a user, and those that other devices begin only in a window that a user opens.
//!
//! A device that pairs can ask for services of this host, so silence is a refusal.

use std::fmt;

use gateway_model::id::MacAddr;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// Time for a pairing, with the answer of the user.
pub const PAIRING_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
/// Longest PIN of the protocol, in bytes.
pub const MAX_PIN: usize = 16;
const PASSKEY_DIGITS: usize = 6;

/// State of a pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairingState {
    /// The devices talk to each other.
    Connecting,
    /// Both devices show a passkey: a user compares and confirms it.
    ConfirmPasskey,
    /// The other device asks for the passkey that is shown here.
    EnterOnDevice,
    /// The other device has a PIN or shows a passkey, which has to be sent.
    EnterPin,
    /// The other device began, and shows nothing: a user accepts it, or does not.
    Accept,
    Paired,
    Failed,
}

impl PairingState {
    const fn is_over(self) -> bool {
        matches!(self, PairingState::Paired | PairingState::Failed)
    }

    /// Reports whether a user has to act.
    pub const fn waits_for_user(self) -> bool {
        !self.is_over() && !matches!(self, PairingState::Connecting)
    }
}

/// The last pairing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pairing {
    pub mac: MacAddr,
    pub state: PairingState,
    /// The other device began it.
    pub incoming: bool,
    /// Passkey or PIN that both devices have to have; null if there is none to compare.
    pub passkey: Option<String>,
    pub started_at: Timestamp,
    /// Time until which it is refused without an answer.
    pub expires_at: Timestamp,
    /// Human-readable reason of a failure; null without one.
    pub error: Option<String>,
}

/// Request of the daemon of BlueZ to the agent of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    Confirm(u32),
    Authorize,
    Pin,
    Passkey,
    /// Shows a passkey or PIN that is entered on the other device.
    Display(String),
}

/// Reply of the agent.
#[derive(Clone, PartialEq, Eq)]
pub enum AgentReply {
    Accept,
    Pin(String),
    Passkey(u32),
    Reject,
}

impl fmt::Debug for AgentReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AgentReply::Accept => "Accept",
            AgentReply::Pin(_) => "Pin(_)",
            AgentReply::Passkey(_) => "Passkey(_)",
            AgentReply::Reject => "Reject",
        })
    }
}

/// Answer of a user to a pairing that waits.
#[derive(Clone, PartialEq, Eq)]
pub enum UserAnswer {
    Passkey(String),
    Pin(String),
    Accept,
    Refuse,
}

/// Reason why a request of a user has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    #[error("another device is being paired")]
    Busy(MacAddr),
    #[error("no pairing of this device waits for an answer")]
    NotWaiting,
    #[error("the passkeys differ, so the pairing was refused")]
    PasskeyDiffers,
}

/// The pairing that runs or was the last, and the window for those of other devices.
#[derive(Clone, Default)]
pub struct PairingWindow {
    current: Option<Pairing>,
    open_until: Option<Timestamp>,
    /// PIN or passkey that came with the request of the user.
    pin: Option<String>,
    answer: Option<AgentReply>,
}

impl fmt::Debug for PairingWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { current, open_until, .. } = self;
        f.debug_struct("PairingWindow")
            .field("current", current)
            .field("open_until", open_until)
            .finish_non_exhaustive()
    }
}

impl PairingWindow {
    /// Returns the last pairing.
    pub fn current(&self) -> Option<&Pairing> {
        self.current.as_ref()
    }

    /// Returns the end of the window, if it is open.
    pub fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.open_until.filter(|until| now < *until)
    }

    /// Opens the window for pairings that other devices begin.
    pub fn open(&mut self, until: Timestamp) {
        self.open_until = Some(until);
    }

    pub fn close(&mut self) {
        self.open_until = None;
    }

    /// Begins a pairing that a user asks for.
    pub fn begin(&mut self, mac: MacAddr, pin: Option<String>, now: Timestamp) -> Result<(), PairingError> {
        self.expire(now);
        if let Some(running) = self.running() {
            return Err(PairingError::Busy(running.mac));
        }
        self.start(mac, false, now);
        self.pin = pin;
        Ok(())
    }

    /// Handles a request to the agent. `None`: it waits for the user, or for [`Self::expire`]. `allowed` is false for a
    /// device that the settings refuse.
    pub fn handle_request(
        &mut self,
        mac: MacAddr,
        request: &AgentRequest,
        allowed: bool,
        now: Timestamp,
    ) -> Option<AgentReply> {
        self.expire(now);
        let is_known = self.running().is_some_and(|running| running.mac == mac);
        let begins = self.running().is_none() && self.open_until(now).is_some();
        if !allowed || !(is_known || begins) {
            return Some(AgentReply::Reject);
        }
        if !is_known {
            self.start(mac, true, now);
        }
        let pin = self.pin.take();
        let incoming = self.current.as_ref().is_some_and(|current| current.incoming);
        match (request, pin) {
            (AgentRequest::Pin, Some(pin)) => return Some(AgentReply::Pin(pin)),
            (AgentRequest::Passkey, Some(pin)) => return Some(passkey_reply(&pin)),
            // The user who began it has accepted it.
            (AgentRequest::Authorize, _) if !incoming => return Some(AgentReply::Accept),
            (AgentRequest::Confirm(passkey), _) => {
                self.wait(PairingState::ConfirmPasskey, Some(shown_passkey(*passkey)));
            }
            (AgentRequest::Authorize, _) => self.wait(PairingState::Accept, None),
            (AgentRequest::Pin | AgentRequest::Passkey, None) => self.wait(PairingState::EnterPin, None),
            (AgentRequest::Display(code), _) => {
                self.wait(PairingState::EnterOnDevice, Some(code.clone()));
                return Some(AgentReply::Accept);
            }
        }
        None
    }

    /// Takes the reply that the agent waits for: the answer of the user, or a refusal when the time is over.
    pub fn take_reply(&mut self, mac: MacAddr, now: Timestamp) -> Option<AgentReply> {
        self.expire(now);
        match self.running().is_some_and(|running| running.mac == mac) {
            true => self.answer.take(),
            false => Some(AgentReply::Reject),
        }
    }

    /// Handles the answer of a user.
    pub fn answer(&mut self, mac: MacAddr, answer: UserAnswer, now: Timestamp) -> Result<(), PairingError> {
        self.expire(now);
        let Some(current) = self.current.as_mut().filter(|one| one.mac == mac && one.state.waits_for_user())
        else {
            return Err(PairingError::NotWaiting);
        };
        let reply = match (current.state, answer) {
            (_, UserAnswer::Refuse) => AgentReply::Reject,
            (PairingState::ConfirmPasskey, UserAnswer::Passkey(passkey)) => {
                if current.passkey.as_deref() != Some(passkey.trim()) {
                    self.answer = Some(AgentReply::Reject);
                    return Err(PairingError::PasskeyDiffers);
                }
                AgentReply::Accept
            }
            (PairingState::Accept, UserAnswer::Accept) => AgentReply::Accept,
            (PairingState::EnterPin, UserAnswer::Pin(pin)) if is_passkey(&pin) => passkey_reply(&pin),
            (PairingState::EnterPin, UserAnswer::Pin(pin)) => AgentReply::Pin(pin),
            _ => return Err(PairingError::NotWaiting),
        };
        current.state = PairingState::Connecting;
        self.answer = Some(reply);
        Ok(())
    }

    /// Notes the end of a pairing.
    pub fn end(&mut self, mac: MacAddr, result: Result<(), String>) {
        let Some(current) = self.current.as_mut().filter(|one| one.mac == mac && !one.state.is_over()) else {
            return;
        };
        current.state = if result.is_ok() { PairingState::Paired } else { PairingState::Failed };
        current.error = result.err();
        current.passkey = None;
        (self.pin, self.answer) = (None, None);
    }

    /// Ends a pairing whose time is over. Returns its device.
    pub fn expire(&mut self, now: Timestamp) -> Option<MacAddr> {
        let mac = self.running().filter(|running| now >= running.expires_at)?.mac;
        self.end(mac, Err("no answer in time".to_owned()));
        Some(mac)
    }

    /// Returns the pairing that runs.
    pub fn running(&self) -> Option<&Pairing> {
        self.current.as_ref().filter(|current| !current.state.is_over())
    }

    fn start(&mut self, mac: MacAddr, incoming: bool, now: Timestamp) {
        self.current = Some(Pairing {
            mac,
            state: PairingState::Connecting,
            incoming,
            passkey: None,
            started_at: now,
            expires_at: now.saturating_add(PAIRING_TIMEOUT).unwrap_or(Timestamp::MAX),
            error: None,
        });
        (self.pin, self.answer) = (None, None);
    }

    fn wait(&mut self, state: PairingState, passkey: Option<String>) {
        if let Some(current) = &mut self.current {
            current.state = state;
            current.passkey = passkey;
        }
    }
}

/// Returns a passkey with all of its digits.
pub fn shown_passkey(passkey: u32) -> String {
    format!("{passkey:0PASSKEY_DIGITS$}")
}

/// Reports whether a PIN has a form that the protocol takes.
pub fn is_pin(pin: &str) -> bool {
    (1..=MAX_PIN).contains(&pin.len()) && pin.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn is_passkey(pin: &str) -> bool {
    pin.len() == PASSKEY_DIGITS && pin.bytes().all(|byte| byte.is_ascii_digit())
}

fn passkey_reply(pin: &str) -> AgentReply {
    match pin.parse() {
        Ok(passkey) if is_passkey(pin) => AgentReply::Passkey(passkey),
        _ => AgentReply::Reject,
    }
}
