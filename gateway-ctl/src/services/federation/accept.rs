//! Exchange of keys, from the side of the peer that gets a proposal. Any host may send one: it makes a pending node, and
//! nothing else.

use gateway_core::federation::message::{Acceptance, Proposal};
use gateway_model::kinds::NodeStatus;
use gateway_model::problem::code;
use gateway_model::upstream::{check_web_address, normalise_web_address};
use gateway_model::{EditError, Problems};

use super::Federation;
use super::exchange::{ExchangeError, PeerIdentity, SCHEMES};
use super::identity::{Identity, is_signed_by};
use crate::store::AuditTicket;

/// Maximum number of pending nodes that proposals make.
const MAX_PENDING: usize = 16;

impl Federation {
    /// Accepts a proposal. A known key makes no other node. Blocks on the disk.
    pub fn accept(&self, ticket: AuditTicket, proposal: Proposal) -> Result<Acceptance, ExchangeError> {
        let mut proposal = proposal;
        let mut problems = Problems::new();
        if let Err(error) = proposal.check() {
            problems.add(code::RANGE, "", format!("{error}."));
        }
        check_web_address("url", &proposal.url, SCHEMES, &mut problems);
        if !problems.is_empty() {
            return Err(EditError::Invalid(problems).into());
        }
        let key = proposal.public_key;
        if !is_signed_by(key, &proposal.signed_bytes(), &proposal.signature) {
            return Err(ExchangeError::Signature);
        }
        normalise_web_address(&mut proposal.url, SCHEMES);
        let identity = Identity::ensure(&self.store)?;
        let state = self.store.current();
        let known = state.nodes.iter().find(|node| node.public_key == Some(key));
        match known.map(|node| node.status) {
            Some(NodeStatus::Rejected | NodeStatus::Revoked) => return Err(ExchangeError::Refused),
            Some(_) => {}
            None if key == identity.public_key() => return Err(ExchangeError::Refused),
            None => {
                let is_waiting = |status| status == NodeStatus::Pending;
                if state.nodes.iter().filter(|node| is_waiting(node.status)).count() >= MAX_PENDING {
                    return Err(ExchangeError::TooMany { limit: MAX_PENDING as u32 });
                }
                let peer = PeerIdentity {
                    public_key: key,
                    node_id: proposal.node_id,
                    name: proposal.name,
                    ca_certificate: String::new(),
                };
                self.store_peer(ticket, &proposal.url, peer)?;
            }
        }
        let mut acceptance = Acceptance {
            public_key: identity.public_key(),
            nonce: proposal.nonce,
            signature: String::new(),
            name: Self::own_name(),
            node_id: self.node_id(),
        };
        acceptance.signature = identity.sign(&acceptance.signed_bytes(key)).to_text();
        Ok(acceptance)
    }
}
