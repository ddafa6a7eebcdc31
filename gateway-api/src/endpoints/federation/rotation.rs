//! Replacement of the key of this gateway.

use gateway_ctl::services::federation::RotationError;
use gateway_model::kinds::{fingerprint, fingerprint_words};
use gateway_model::problem::code;
use gateway_model::{EditError, Problems};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

/// Range of the overlap in seconds: up to 90 days.
const OVERLAP: std::ops::RangeInclusive<u32> = 5..=7_776_000;
/// Default of the overlap in seconds: 7 days.
const DEFAULT_OVERLAP: u32 = 604_800;

pub(super) fn rows(t: &mut Table) {
    let audit = Audit { action: "rotate_key", resource_type: "federation" };
    t.action("/federation/rotate-key", "rotate_federation_key", Effect::Stores(audit), rotate)
        .summary("Replace the signing key of this gateway")
        .doc(
            "The old key signs the new one, and is erased. Peers that exchange a message with this gateway within the overlap \
             follow; until its end they accept messages by both. A peer that was away for all of it has to exchange keys \
             again. A key that may be stolen is no case for this: let the peers revoke it.",
        )
        .answers(&[Code::InvalidState]);
}

/// Time for which both keys count.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
struct RotationInput {
    /// Seconds: 5 to 7776000, default 604800 (7 days).
    #[schemars(range(min = 5, max = 7_776_000))]
    overlap_sec: u32,
}

impl Default for RotationInput {
    fn default() -> Self {
        RotationInput { overlap_sec: DEFAULT_OVERLAP }
    }
}

/// New key of this gateway.
#[derive(Debug, Serialize, JsonSchema)]
struct RotatedKey {
    /// Ed25519, base64.
    public_key: String,
    /// SHA-256 of the public key, as OpenSSH writes it.
    fingerprint: String,
    /// The first 96 bits of the same hash as words.
    fingerprint_words: String,
    /// Words of the key that was replaced.
    previous_fingerprint_words: Option<String>,
    /// Time until which both keys count.
    overlap_until: Option<Timestamp>,
}

async fn rotate(cx: Cx, request: Req<RotationInput>) -> Result<RotatedKey, ApiError> {
    let seconds = request.input.overlap_sec;
    if !OVERLAP.contains(&seconds) {
        let mut problems = Problems::new();
        let message = format!("Must be from {} to {}.", OVERLAP.start(), OVERLAP.end());
        problems.add(code::RANGE, "overlap_sec", message);
        return Err(EditError::Invalid(problems).into());
    }
    let (federation, ticket) = (cx.open()?.federation.clone(), cx.own_ticket()?);
    let overlap = SignedDuration::from_secs(seconds.into());
    let rotated = blocking(move || {
        let key = federation.rotate_key(ticket, overlap)?;
        Ok((key, federation.previous_key()))
    });
    let (key, previous) = rotated.await?.map_err(refused)?;
    Ok(RotatedKey {
        public_key: key.to_string(),
        fingerprint: fingerprint(key),
        fingerprint_words: fingerprint_words(key),
        previous_fingerprint_words: previous.map(|(key, _)| fingerprint_words(key)),
        overlap_until: previous.map(|(_, until)| until),
    })
}

fn refused(error: RotationError) -> ApiError {
    let state = match &error {
        RotationError::NoKey => "no_key",
        RotationError::Overlap(_) => "overlap",
        RotationError::Store(_) => "",
    };
    let message = format!("The key was not replaced: {error}.");
    match error {
        RotationError::Store(error) => error.into(),
        RotationError::NoKey | RotationError::Overlap(_) => ApiError::new(Code::InvalidState, message)
            .detail("state", state)
            .detail("allowed", Vec::<String>::new()),
    }
}
