//! Changes of the mesh by an administrator: pre-auth keys, approved routes, removed nodes.

use std::collections::BTreeSet;

use gateway_mesh::{AuthKeyTerms, LedgerError};
use gateway_model::Problems;
use gateway_model::problem::code;
use gateway_model::validated::Cidr;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ledger::TicketLedger;
use super::{Mesh, OpenError, Opened};
use crate::store::{AuditResult, AuditTicket, Error};

/// Longest lifetime of a key, in seconds: a year.
const MAX_EXPIRY_SEC: u32 = 365 * 24 * 3600;
const MAX_TAGS: usize = 32;
const MAX_TAG_BYTES: usize = 64;
const MAX_ROUTES: usize = 64;

/// Terms of a new pre-auth key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KeyTerms {
    /// The key registers more than one node.
    pub reusable: bool,
    /// Its nodes are removed once they are gone for `mesh.coordinator.ephemeral_sec`.
    pub ephemeral: bool,
    /// Seconds until the key registers no more nodes, 1 to 31536000.
    pub expires_in: u32,
    /// Tags of its nodes, such as `tag:server`. The own key of a node with tags does not end.
    pub tags: Vec<String>,
    /// Number of nodes that a reusable key registers. 0: any number.
    pub usage_limit: u32,
}

impl Default for KeyTerms {
    fn default() -> KeyTerms {
        KeyTerms { reusable: false, ephemeral: false, expires_in: 3600, tags: Vec::new(), usage_limit: 0 }
    }
}

/// A pre-auth key, which is shown once.
#[derive(Clone, Serialize, JsonSchema)]
pub struct CreatedKey {
    /// Identifier in the audit trail.
    pub id: String,
    /// Text of the key. The gateway keeps its hash alone.
    pub key: String,
    pub expires_at: Timestamp,
    pub reusable: bool,
    pub ephemeral: bool,
    pub tags: Vec<String>,
    pub usage_limit: u32,
    /// URL of the coordinator for clients.
    pub login_server: String,
    /// Command that joins a host with a stock client.
    pub command: String,
}

/// Reason why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdministrationError {
    #[error("the coordinator is off: set mesh.coordinator.enabled")]
    Off,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the request is not valid")]
    Invalid(Problems),
    #[error("the mesh has as many pre-auth keys as it can have")]
    TooManyKeys,
    #[error("the mesh has no peer {0:?}")]
    NoPeer(String),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Store(#[from] Error),
}

impl KeyTerms {
    fn check(&self) -> Result<(), Problems> {
        let mut problems = Problems::new();
        if !(1..=MAX_EXPIRY_SEC).contains(&self.expires_in) {
            let message = format!("Must be from 1 to {MAX_EXPIRY_SEC}.");
            problems.add(code::RANGE, "expires_in", message);
        }
        if self.usage_limit > 1 && !self.reusable {
            problems.add(code::CONFLICT, "usage_limit", "A key that is not reusable registers one node.");
        }
        if self.tags.len() > MAX_TAGS {
            problems.add(code::RANGE, "tags", format!("At most {MAX_TAGS}."));
        }
        for (index, tag) in self.tags.iter().enumerate() {
            if !is_tag(tag) {
                let message = "Expected tag: and a name of lower-case letters, digits and hyphens.";
                problems.add(code::FORMAT, format!("tags[{index}]"), message);
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

fn is_tag(text: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let name = text.strip_prefix("tag:").filter(|_| text.len() <= MAX_TAG_BYTES);
    name.is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_plain)
    })
}

impl Mesh {
    /// Creates a pre-auth key. Blocks on the disk.
    pub fn create_key(
        &self,
        ticket: AuditTicket,
        terms: KeyTerms,
    ) -> Result<CreatedKey, AdministrationError> {
        terms.check().map_err(AdministrationError::Invalid)?;
        let opened = self.open()?.filter(|opened| opened.settings.enabled).ok_or(AdministrationError::Off)?;
        let login_server = opened.settings.url().ok_or(AdministrationError::Off)?;
        let lifetime = SignedDuration::from_secs(terms.expires_in.into());
        let expires = opened.coordinator.now().checked_add(lifetime).unwrap_or(Timestamp::MAX);
        let KeyTerms { reusable, ephemeral, expires_in: _, tags, usage_limit } = terms;
        let tags: Vec<String> = BTreeSet::from_iter(tags).into_iter().collect();
        let terms = AuthKeyTerms { reusable, ephemeral, expires, tags: tags.clone(), usage_limit };
        let ledger = TicketLedger::new(&opened.ledger, ticket);
        let created = opened.coordinator.create_key(terms, &ledger)?;
        let (key, text) = created.ok_or(AdministrationError::TooManyKeys)?;
        Ok(CreatedKey {
            id: key.id,
            command: format!("tailscale up --login-server {login_server} --auth-key {text}"),
            key: text,
            expires_at: expires,
            reusable,
            ephemeral,
            tags,
            usage_limit,
            login_server,
        })
    }

    /// Removes a peer, which loses access at once. Blocks on the disk.
    pub fn remove_peer(&self, ticket: AuditTicket, id: &str) -> Result<(), AdministrationError> {
        self.change(ticket, id, |opened, number, ledger| opened.coordinator.remove(number, ledger))
    }

    /// Sets the prefixes that a peer may route. Blocks on the disk.
    pub fn approve_routes(
        &self,
        ticket: AuditTicket,
        id: &str,
        routes: &[Cidr],
    ) -> Result<(), AdministrationError> {
        if routes.len() > MAX_ROUTES {
            let mut problems = Problems::new();
            problems.add(code::RANGE, "routes", format!("At most {MAX_ROUTES}."));
            return Err(AdministrationError::Invalid(problems));
        }
        let routes: BTreeSet<_> = routes.iter().map(|route| route.net().trunc()).collect();
        self.change(ticket, id, |opened, number, ledger| {
            opened.coordinator.approve_routes(number, routes.iter().copied().collect(), ledger)
        })
    }

    /// Changes a peer. A request that changes nothing is recorded all the same.
    fn change(
        &self,
        ticket: AuditTicket,
        id: &str,
        run: impl FnOnce(&Opened, u64, &TicketLedger<'_>) -> Result<bool, LedgerError>,
    ) -> Result<(), AdministrationError> {
        let unknown = || AdministrationError::NoPeer(id.to_owned());
        let opened = self.open()?.ok_or_else(unknown)?;
        let number: u64 = id.parse().map_err(|_| unknown())?;
        let ledger = TicketLedger::new(&opened.ledger, ticket);
        if !run(&opened, number, &ledger)? {
            return Err(unknown());
        }
        match ledger.into_unused() {
            Some(ticket) => Ok(self.store.record(ticket, AuditResult::Success)?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_a_key_are_checked_by_field() {
        let faults = |terms: KeyTerms| -> Vec<String> {
            let problems = terms.check().err().map(|problems| problems.iter().cloned().collect::<Vec<_>>());
            problems.unwrap_or_default().into_iter().map(|problem| problem.path).collect()
        };
        assert!(faults(KeyTerms::default()).is_empty());
        let tags = ["tag:a-1", "a", "tag:", "tag:A", "tag:1"].map(str::to_owned).to_vec();
        let terms = KeyTerms { expires_in: 0, usage_limit: 2, tags, ..KeyTerms::default() };
        assert_eq!(faults(terms), ["expires_in", "usage_limit", "tags[1]", "tags[2]", "tags[3]", "tags[4]"]);
        assert!(faults(KeyTerms { reusable: true, usage_limit: 2, ..KeyTerms::default() }).is_empty());
    }
}
