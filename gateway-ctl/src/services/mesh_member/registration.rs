//! Registration at a coordinator, and the switch of the membership.

use gateway_mesh::client::{ClientError, ControlSession, fetch_key};
use gateway_mesh::wire::{RegisterAuth, RegisterRequest, RegisterResponse};
use gateway_mesh::{KeyPair, MachineKey};
use gateway_model::Problems;
use gateway_model::problem::code;
use gateway_outbound::causes::with_causes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::MeshMember;
use super::commit::commit;
use super::dial::Target;
use super::membership::{Membership, Record};
use super::session::register_request;
use crate::os::host_name;
use crate::store::{AuditResult, AuditTicket, Error};
use crate::supervise::blocking;
use crate::tls::with_authorities;

/// Port of stock clients.
const LISTEN_PORT: u16 = 41641;
const MAX_NAME_BYTES: usize = 63;
const MAX_CERTIFICATE_BYTES: usize = 64 * 1024;
const MAX_KEY_BYTES: usize = 256;

/// Registration of this gateway at a coordinator.
#[derive(Clone, Deserialize, JsonSchema)]
pub struct RegisterMember {
    /// URL of the coordinator, such as `https://gw.example.net:8443`.
    pub coordinator_url: String,
    /// Pre-auth key of that coordinator. It is used once, and not stored. Empty: the coordinator asks a person to log in, if it
    /// can, and `login_url` in the answer says where.
    #[serde(default)]
    pub auth_key: String,
    /// Name of this gateway in the mesh. Empty: the name of the host.
    #[serde(default)]
    pub hostname: String,
    /// Authorities in PEM that the certificates of the coordinator and its relay have to come from. Empty: those of the system.
    #[serde(default)]
    pub ca_certificate: String,
    /// UDP port for the packets of peers.
    #[serde(default = "listen_port")]
    pub listen_port: u16,
}

fn listen_port() -> u16 {
    LISTEN_PORT
}

/// Reason why the membership was not changed.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    #[error("the request is not valid")]
    Invalid(Problems),
    #[error("this gateway coordinates a mesh itself")]
    Coordinates,
    #[error("this gateway is registered at no coordinator")]
    NotRegistered,
    #[error("the coordinator does not answer: {0}")]
    Unreachable(String),
    #[error(transparent)]
    Store(#[from] Error),
}

impl RegisterMember {
    fn check(&self) -> Result<Target, Problems> {
        let mut problems = Problems::new();
        let target = Target::of_url(&self.coordinator_url);
        if target.is_none() {
            let message =
                "Expected the URL of a coordinator: https:// or http://, a host, and perhaps a port.";
            problems.add(code::FORMAT, "coordinator_url", message);
        }
        if self.auth_key.len() > MAX_KEY_BYTES || !self.auth_key.bytes().all(|byte| byte.is_ascii_graphic()) {
            problems.add(code::FORMAT, "auth_key", "Expected the text of a pre-auth key.");
        }
        if self.hostname.len() > MAX_NAME_BYTES
            || self.hostname.chars().any(|c| c.is_control() || c.is_whitespace())
        {
            problems.add(
                code::FORMAT,
                "hostname",
                format!("Expected a name of at most {MAX_NAME_BYTES} bytes."),
            );
        }
        if self.ca_certificate.len() > MAX_CERTIFICATE_BYTES {
            problems.add(code::RANGE, "ca_certificate", format!("At most {MAX_CERTIFICATE_BYTES} bytes."));
        }
        if self.listen_port == 0 {
            problems.add(code::RANGE, "listen_port", "The port must be from 1 to 65535.");
        }
        match target {
            Some(target) if problems.is_empty() => Ok(target),
            _ => Err(problems),
        }
    }
}

/// Returns the refusal of one field.
fn invalid(path: &str, message: impl Into<String>) -> MemberError {
    let mut problems = Problems::new();
    problems.add(code::FORMAT, path, message.into());
    MemberError::Invalid(problems)
}

impl MeshMember {
    /// Registers this gateway, and switches the membership on. A registration at the same coordinator keeps the keys of this
    /// node. Nothing is stored if the coordinator refuses.
    pub async fn register(&self, ticket: AuditTicket, input: RegisterMember) -> Result<(), MemberError> {
        let target = input.check().map_err(MemberError::Invalid)?;
        if with_authorities(&self.connector.tls(), &input.ca_certificate).is_err() {
            return Err(invalid("ca_certificate", "Expected certificates in PEM."));
        }
        if self.coordinates() {
            return Err(MemberError::Coordinates);
        }
        let unreachable = |error: ClientError| MemberError::Unreachable(with_causes(&error));
        let connect = || self.connector.connect(&target, &input.ca_certificate);
        let socket = connect().await.map_err(MemberError::Unreachable)?;
        let key = fetch_key(socket, &target.authority()).await.map_err(unreachable)?;
        let membership = self.membership(&input, key)?;
        let socket = connect().await.map_err(MemberError::Unreachable)?;
        let host = target.authority();
        let session = ControlSession::open(socket, &host, &membership.machine, key).await;
        let session = session.map_err(unreachable)?;
        let auth_key = Some(input.auth_key.clone()).filter(|key| !key.is_empty());
        let routes = self.worlds.in_force().config.mesh.member.offered();
        let request = RegisterRequest {
            auth: auth_key.map(|key| RegisterAuth { auth_key: Some(key) }),
            ..register_request(&membership, &routes)
        };
        let answer = session.register(&request).await.map_err(unreachable)?;
        let membership = admitted(membership, answer, &input.auth_key)?;
        self.keep(ticket, membership).await
    }

    /// Makes the membership that is to be registered. A coordinator with another key than before is another coordinator.
    fn membership(&self, input: &RegisterMember, key: MachineKey) -> Result<Membership, MemberError> {
        let before = Membership::stored(&self.store.current()).filter(|before| {
            before.record.coordinator_url == input.coordinator_url && before.record.coordinator_key == key
        });
        let fresh =
            || KeyPair::random().map_err(|_| MemberError::Unreachable("no random numbers".to_owned()));
        let (machine, node) = match before {
            Some(before) => (before.machine, before.node),
            None => (fresh()?, fresh()?),
        };
        let hostname = if input.hostname.is_empty() { host_name::read() } else { input.hostname.clone() };
        let record = Record {
            coordinator_url: input.coordinator_url.clone(),
            coordinator_key: key,
            ca_certificate: input.ca_certificate.clone(),
            hostname,
            listen_port: input.listen_port,
            login_url: String::new(),
            up: true,
            registered_at: self.store.clock().now(),
        };
        Ok(Membership { record, machine, node })
    }

    async fn keep(&self, mut ticket: AuditTicket, membership: Membership) -> Result<(), MemberError> {
        ticket.details = json!({
            "coordinator_url": membership.record.coordinator_url,
            "coordinator_key": membership.record.coordinator_key,
        });
        let store = self.store.clone();
        Ok(blocking(move || commit(&store, ticket, |draft| membership.store(draft))).await?)
    }

    /// Switches the membership on or off. The keys stay, and so does the registration.
    pub async fn switch(&self, ticket: AuditTicket, up: bool) -> Result<(), MemberError> {
        if up && self.coordinates() {
            return Err(MemberError::Coordinates);
        }
        let mut membership = Membership::stored(&self.store.current()).ok_or(MemberError::NotRegistered)?;
        if membership.record.up == up {
            return Ok(self.store.record(ticket, AuditResult::Success)?);
        }
        membership.record.up = up;
        let store = self.store.clone();
        Ok(blocking(move || commit(&store, ticket, |draft| membership.store(draft))).await?)
    }
}

/// Returns the membership as the coordinator has admitted it, or its refusal.
fn admitted(
    mut membership: Membership,
    answer: RegisterResponse,
    auth_key: &str,
) -> Result<Membership, MemberError> {
    if !answer.error.is_empty() {
        // Some coordinators repeat what they do not know.
        let is_repeated = !auth_key.is_empty() && answer.error.contains(auth_key);
        let reason = if is_repeated { "the key is not valid".to_owned() } else { answer.error };
        return Err(invalid("auth_key", format!("The coordinator refuses: {reason}.")));
    }
    if answer.node_key_expired {
        return Err(invalid("auth_key", "The coordinator says that the key of this node has ended."));
    }
    membership.record.login_url = answer.auth_url;
    Ok(membership)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(fields: serde_json::Value) -> RegisterMember {
        let mut whole = json!({"coordinator_url": "https://gw.example.net:8443"});
        whole.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        serde_json::from_value(whole).expect("an input")
    }

    #[test]
    fn fields_are_checked_by_name() {
        assert!(input(json!({"auth_key": "key"})).check().is_ok());
        for (field, value) in [
            ("coordinator_url", json!("gw.example.net")),
            ("auth_key", json!("a b")),
            ("hostname", json!("a b")),
            ("listen_port", json!(0)),
        ] {
            let problems = input(json!({field: value})).check().expect_err(field);
            assert_eq!(problems.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), [field]);
        }
    }

    #[test]
    fn a_refusal_does_not_repeat_the_key() {
        let record = Record {
            coordinator_url: String::new(),
            coordinator_key: MachineKey([3; 32]),
            ca_certificate: String::new(),
            hostname: String::new(),
            listen_port: 1,
            login_url: String::new(),
            up: true,
            registered_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let (machine, node) = (KeyPair::of_secret([1; 32]), KeyPair::of_secret([2; 32]));
        let membership =
            || Membership { record: record.clone(), machine: machine.clone(), node: node.clone() };
        let refused = |error: &str| {
            let answer = RegisterResponse { error: error.to_owned(), ..RegisterResponse::default() };
            match admitted(membership(), answer, "secret-key") {
                Err(MemberError::Invalid(problems)) => problems.list()[0].message.clone(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(refused("it is used up"), "The coordinator refuses: it is used up.");
        assert!(!refused("unknown key secret-key").contains("secret-key"));
    }
}
