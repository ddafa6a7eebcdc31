//! Rights of a node, and the decisions of administrators about it.

use super::{Node, NodeDecision, NodeStatus, ReceivedKind, SyncPolicy, parsed_kinds};
use crate::edit::EditError;
use crate::kinds::federation_role::{Permission, SyncKind};
use crate::problem::{Problems, code};
use crate::resource::Resource;
use crate::state::State;

impl Node {
    /// Reports whether an administrator has approved it.
    pub fn is_approved(&self) -> bool {
        self.status == NodeStatus::Approved
    }

    /// Returns the kinds that it may fetch from this gateway.
    pub fn offered_kinds(&self, state: &State) -> Vec<SyncKind> {
        let is_on = self.is_approved() && matches!(self.sync_policy, SyncPolicy::Push | SyncPolicy::Both);
        let named = parsed_kinds(&self.sync_resources).filter(|_| is_on);
        named.filter(|kind| self.permits(state, *kind, |permission| permission.pull)).collect()
    }

    /// Returns the kinds that this gateway fetches from it.
    pub fn received_kinds(&self, state: &State) -> Vec<SyncKind> {
        let accepted = self.accepted_kinds().into_iter().filter(|_| self.is_approved());
        accepted.filter(|kind| self.permits(state, *kind, |permission| permission.push)).collect()
    }

    /// Returns the kinds that the fields of the node accept, whatever its status and role.
    fn accepted_kinds(&self) -> Vec<SyncKind> {
        let is_on = matches!(self.sync_policy, SyncPolicy::Pull | SyncPolicy::Both);
        let allowed: Vec<SyncKind> = parsed_kinds(&self.allowed_receive_resources).collect();
        parsed_kinds(&self.sync_resources).filter(|kind| is_on && allowed.contains(kind)).collect()
    }

    fn permits(&self, state: &State, kind: SyncKind, right: fn(&Permission) -> bool) -> bool {
        let role = state.federation_roles.iter().find(|role| role.name == self.role);
        role.and_then(|role| role.permission(kind)).is_some_and(right)
    }

    /// Returns the state of a kind that was last received.
    pub fn received(&self, kind: SyncKind) -> Option<&ReceivedKind> {
        self.received.iter().find(|received| received.kind == kind)
    }

    /// Carries out a decision.
    pub fn decide(&mut self, decision: NodeDecision) -> Result<(), EditError> {
        use NodeStatus::{Approved, Connected, Pending, Rejected, Revoked, Unreachable};
        let refused = |message: String| {
            let (id, state) = (self.meta.id, self.status.as_str());
            Err(EditError::WrongState { resource_type: Node::NOUN, id, state, message })
        };
        self.status = match (decision, self.status) {
            (NodeDecision::Approve, _) if self.public_key.is_none() => {
                return refused(format!("The key of {} is not known: exchange keys first.", self.name));
            }
            (NodeDecision::Approve, Pending | Rejected | Approved) => Approved,
            (NodeDecision::Approve, _) => {
                return refused(format!("{} is revoked: delete it, and exchange keys again.", self.name));
            }
            (NodeDecision::Reject, Pending | Rejected) => Rejected,
            (NodeDecision::Reject, _) => {
                return refused(format!("{} is not pending: revoke it.", self.name));
            }
            (NodeDecision::Revoke, Pending | Rejected | Approved | Connected | Unreachable | Revoked) => {
                Revoked
            }
        };
        Ok(())
    }

    /// Two nodes that send the same kind would be two primaries.
    pub(super) fn check_primaries(&self, state: &State, problems: &mut Problems) {
        let accepted = self.accepted_kinds();
        let is_out = |node: &&Node| matches!(node.status, NodeStatus::Rejected | NodeStatus::Revoked);
        for other in state.nodes.iter().filter(|other| other.meta.id != self.meta.id && !is_out(other)) {
            for kind in other.accepted_kinds().into_iter().filter(|kind| accepted.contains(kind)) {
                let message =
                    format!("{kind} comes from the node {:?} already: a kind has one primary.", other.name);
                problems.add(code::CONFLICT, "sync_resources", message);
            }
        }
    }
}
