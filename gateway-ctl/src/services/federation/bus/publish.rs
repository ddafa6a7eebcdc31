//! Publications of this gateway: the kinds that any node may fetch, each at its own subject of the hub.

use std::collections::BTreeMap;

use gateway_core::federation::bus::hub::{MAX_PAYLOAD_BYTES, last_of};
use gateway_core::federation::bus::publication::{Publication, STREAM, SUBJECT_PREFIX, subject};
use gateway_core::federation::bus::wire::Message;
use gateway_core::federation::message::{Envelope, Purpose, SCHEMA};
use gateway_core::federation::offer::offer;
use gateway_model::State;
use gateway_model::bulk_edit::revision;
use gateway_model::kinds::SyncKind;
use serde::Deserialize;
use serde_json::json;

use super::session::{Session, SessionError};
use crate::services::federation::identity::Identity;
use crate::services::federation::serve::signed;
use crate::services::federation::{Federation, VERSION};
use crate::supervise::blocking;

/// Error code of JetStream: the stream exists with other settings, which its administrator has chosen.
const STREAM_EXISTS: u32 = 10058;

/// Revisions of this gateway's kinds at the hub.
#[derive(Debug, Default)]
pub(super) struct Published {
    has_stream: bool,
    /// Revision of each kind that the hub has.
    revisions: BTreeMap<SyncKind, u64>,
}

/// Message that is ready for the hub.
struct Outgoing {
    kind: SyncKind,
    publication: Publication,
    envelope: Vec<u8>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    error: Option<AnswerError>,
}

#[derive(Deserialize)]
struct AnswerError {
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

/// Returns the kinds that any node may fetch from this gateway.
pub(super) fn published_kinds(state: &State) -> Vec<SyncKind> {
    let mut kinds: Vec<SyncKind> = state.nodes.iter().flat_map(|node| node.offered_kinds(state)).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

impl Federation {
    /// Publishes each kind whose revision the hub does not have. Returns their number.
    pub(super) async fn publish_changes(
        &self,
        session: &mut Session,
        max_payload: usize,
        published: &mut Published,
    ) -> Result<u64, SessionError> {
        let state = self.store.current();
        let kinds = published_kinds(&state);
        published.revisions.retain(|kind, _| kinds.contains(kind));
        let due: Vec<SyncKind> = kinds
            .iter()
            .copied()
            .filter(|kind| published.revisions.get(kind) != Some(&revision(&state, *kind)))
            .collect();
        if due.is_empty() {
            return Ok(0);
        }
        if !published.has_stream {
            let created = create_stream(session).await;
            unless_denied(created, session)?;
            published.has_stream = true;
        }
        let node_id = self.node_id();
        let limit = max_payload.min(MAX_PAYLOAD_BYTES);
        let composed = blocking(move || {
            let identity = Identity::of(&state)?;
            let heads: BTreeMap<SyncKind, u64> =
                kinds.iter().map(|kind| (*kind, revision(&state, *kind))).collect();
            let compose = |kind: SyncKind| {
                let publication = Publication {
                    schema: SCHEMA,
                    node_id: node_id.clone(),
                    version: VERSION.to_owned(),
                    kind,
                    heads: heads.clone(),
                    offer: offer(&state, kind, ""),
                };
                compose(&identity, publication, limit)
            };
            Some((identity.public_key(), due.into_iter().map(compose).collect::<Vec<_>>()))
        });
        let Some((key, messages)) = composed.await else { return Ok(0) };
        let mut count = 0;
        for Outgoing { kind, publication, envelope } in messages {
            let subject = subject(kind, key);
            let head = publication.offer.revision;
            let is_first = !published.revisions.contains_key(&kind);
            let sent = async {
                if is_first && has_last(session, &subject, &publication).await? {
                    return Ok(0);
                }
                let answer = session.request(&subject, &envelope).await?;
                check_answer(&answer, 0).map(|()| 1)
            };
            let sent = sent.await;
            count += unless_denied(sent, session)?;
            published.revisions.insert(kind, head);
        }
        Ok(count)
    }
}

/// Passes over what the hub denies: nodes pull it.
fn unless_denied<T: Default>(result: Result<T, SessionError>, session: &Session) -> Result<T, SessionError> {
    match result {
        Err(SessionError::Refused(_)) if session.denied.is_some() => Ok(T::default()),
        result => result,
    }
}

/// Returns the signed message, without its objects if they are more than the hub takes.
fn compose(identity: &Identity, mut publication: Publication, limit: usize) -> Outgoing {
    let kind = publication.kind;
    let bytes = |publication: &Publication| {
        let envelope = signed(identity, Purpose::Publication, publication);
        serde_json::to_vec(&envelope).expect("an envelope has string keys")
    };
    let mut envelope = bytes(&publication);
    if envelope.len() > limit {
        publication.offer.objects = None;
        envelope = bytes(&publication);
    }
    Outgoing { kind, publication, envelope }
}

/// Reports whether the hub has this state already, as after a reconnection.
async fn has_last(
    session: &mut Session,
    subject: &str,
    publication: &Publication,
) -> Result<bool, SessionError> {
    let last = session.request(&last_of(subject), b"").await?;
    let payload = Envelope::parse(&last.payload).map(|envelope| envelope.payload);
    let last = payload.and_then(|payload| Publication::parse(&payload));
    Ok(last.is_ok_and(|last| last.offer == publication.offer && last.version == publication.version))
}

/// Creates the stream that keeps the last message of each subject, unless it exists.
async fn create_stream(session: &mut Session) -> Result<(), SessionError> {
    let config = json!({
        "name": STREAM,
        "subjects": [format!("{SUBJECT_PREFIX}.>")],
        "retention": "limits",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_msgs_per_subject": 1,
        "max_bytes": -1,
        "max_age": 0,
        "discard": "old",
        "storage": "file",
        "num_replicas": 1,
        "allow_direct": true,
    });
    let subject = format!("$JS.API.STREAM.CREATE.{STREAM}");
    let answer = session.request(&subject, config.to_string().as_bytes()).await?;
    check_answer(&answer, STREAM_EXISTS)
}

/// Checks an answer of JetStream. An error with the code `accepted` counts as success.
fn check_answer(answer: &Message, accepted: u32) -> Result<(), SessionError> {
    if let Some(status) = answer.status {
        return Err(SessionError::Refused(format!("no JetStream answers (status {status})")));
    }
    let read: Result<Answer, _> = serde_json::from_slice(&answer.payload);
    match read.map(|answer| answer.error) {
        Ok(None) => Ok(()),
        Ok(Some(error)) if accepted != 0 && error.err_code == accepted => Ok(()),
        Ok(Some(error)) => Err(SessionError::Refused(error.description)),
        Err(_) => Err(SessionError::Refused("the answer is not one of JetStream".to_owned())),
    }
}
