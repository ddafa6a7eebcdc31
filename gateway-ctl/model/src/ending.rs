//! Record of ended exceptions, policies and API keys.
//!
//! An end is compared with a clock only until it is recorded. Afterwards a clock that is set back, a rollback or an
//! import revives nothing. Only a user who gives a policy or a key another end lifts the record; exceptions are not
//! edited.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::decode;
use crate::edit::EditError;
use crate::id::Id;
use crate::kinds::{ApiKey, Exception, RoutingPolicy};
use crate::state::State;

/// Objects that have ended but are not recorded as ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    pub exceptions: Vec<Id>,
    /// Policies whose stored or applied form is over.
    pub policies: Vec<Id>,
    pub api_keys: Vec<Id>,
}

impl Overdue {
    pub fn len(&self) -> usize {
        self.exceptions.len() + self.policies.len() + self.api_keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Gives an input the recorded end of the row that it replaces, if it leaves `expires_at` as it is.
pub(crate) fn carry_over(
    input: &mut Map<String, Value>,
    expires_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
) {
    let given = input.get("expires_at").and_then(|value| decode::from_value(value).ok());
    if given == expires_at {
        input.insert("ended_at".into(), json!(ended_at));
    }
}

fn is_over(expires_at: Option<Timestamp>, ended_at: Option<Timestamp>, now: Timestamp) -> bool {
    ended_at.is_none() && expires_at.is_some_and(|end| end <= now)
}

fn is_policy_over(policy: &RoutingPolicy, now: Timestamp) -> bool {
    is_over(policy.expires_at, policy.ended_at, now)
}

impl State {
    /// Returns the objects that have ended and are not recorded as ended. With `uncertain`, also exceptions that allow
    /// egress and have time left, because the clock is not reliable.
    pub fn overdue(&self, now: Timestamp, uncertain: bool) -> Overdue {
        let is_exception_over = |exception: &Exception| {
            exception.expires_at.is_none_or(|end| end <= now) || (uncertain && exception.allows_egress())
        };
        let open = self.exceptions.iter().filter(|e| e.revoked_at.is_none() && e.ended_at.is_none());
        let exceptions = open.filter(|exception| is_exception_over(exception)).map(|e| e.meta.id).collect();
        let policies = self.routing_policies.iter().chain(self.applied.policies.iter());
        let policies = policies.filter(|policy| is_policy_over(policy, now)).map(|policy| policy.meta.id);
        let mut policies: Vec<Id> = policies.collect();
        policies.sort();
        policies.dedup();
        let keys = self.api_keys.iter().filter(|key| is_over(key.expires_at, key.ended_at, now));
        Overdue { exceptions, policies, api_keys: keys.map(|key| key.meta.id).collect() }
    }

    /// Records that these exceptions have ended.
    pub fn end_exceptions(&mut self, ids: &[Id]) -> Result<(), EditError> {
        for id in ids {
            let Some(exception) = self.exceptions.get(*id).cloned() else { continue };
            let ended = Exception { ended_at: Some(self.now()), ..Exception::clone(&exception) };
            self.put(ended)?;
        }
        Ok(())
    }

    /// Records that these policies have ended, in their stored and in their applied form. It is no apply: pending
    /// policies stay pending.
    pub fn end_policies(&mut self, ids: &[Id]) -> Result<(), EditError> {
        let now = self.now();
        let mut applied = self.applied.policies.clone();
        for id in ids {
            if let Some(policy) = self.routing_policies.get(*id).filter(|policy| is_policy_over(policy, now))
            {
                let ended = RoutingPolicy { ended_at: Some(now), ..RoutingPolicy::clone(policy) };
                self.put(ended)?;
            }
            if let Some(policy) = applied.get(*id).filter(|policy| is_policy_over(policy, now)) {
                let ended = RoutingPolicy { ended_at: Some(now), ..RoutingPolicy::clone(policy) };
                applied.put(ended).expect("policies have no unique keys");
            }
        }
        self.record_applied(applied);
        Ok(())
    }

    /// Records that these API keys have expired.
    pub fn end_api_keys(&mut self, ids: &[Id]) -> Result<(), EditError> {
        for id in ids {
            let Some(key) = self.api_keys.get(*id).cloned() else { continue };
            let ended = ApiKey { ended_at: Some(self.now()), ..ApiKey::clone(&key) };
            self.put(ended)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
