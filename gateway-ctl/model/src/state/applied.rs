//! Applied policies: their frozen forms, and the stored objects that these were merged from.
//!
//! Decision 0020 says why.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Found, State};
use crate::cow::CowMap;
use crate::id::{Id, Revision};
use crate::kinds::{Chain, PrivacyClass, Profile, RoutingPolicy};
use crate::registry::{LoadError, stored_json};
use crate::resource::{Resource, from_stored, to_stored};
use crate::table::{KeyClash, Table};

/// Key of the stored form that holds [`MergedFrom`].
const MERGED_FROM: &str = "merged_from";

/// The frozen policies.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Revision of the last apply that left no policy pending; 0 before the first.
    pub revision: Revision,
    pub at: Option<Timestamp>,
    pub policies: Table<RoutingPolicy>,
    /// Of the policies that name a profile, a chain or a privacy class.
    merged_from: CowMap<Id, Arc<MergedFrom>>,
}

/// Objects that an applied policy was merged from, as they were stored at the apply.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedFrom {
    pub policy: RoutingPolicy,
    pub profile: Option<Arc<Profile>>,
    /// Chain of the policy, else that of the profile.
    pub chain: Option<Arc<Chain>>,
    /// Privacy class of the policy, else that of the profile.
    pub privacy_class: Option<Arc<PrivacyClass>>,
}

impl Applied {
    /// For the store: takes over a frozen policy that it read back.
    pub fn load(&mut self, json: &[u8]) -> Result<(), LoadError> {
        let unreadable = |source| LoadError::Json { noun: RoutingPolicy::NOUN, source };
        let stored: Value = serde_json::from_slice(json).map_err(unreadable)?;
        let policy: RoutingPolicy = from_stored(&stored).map_err(unreadable)?;
        if let Some(form) = stored.get(MERGED_FROM) {
            let merged_from = MergedFrom::from_stored(form).map_err(unreadable)?;
            self.merged_from.insert(policy.meta.id, Arc::new(merged_from));
        }
        let clash = |clash: KeyClash| LoadError::Clash { noun: RoutingPolicy::NOUN, field: clash.field };
        self.policies.put(policy).map_err(clash)
    }

    /// For the store: returns the bytes that it keeps for a frozen policy.
    pub fn stored_json(&self, policy: &RoutingPolicy) -> Vec<u8> {
        let Some(merged_from) = self.merged_from.get(&policy.meta.id) else { return stored_json(policy) };
        let mut stored = to_stored(policy);
        stored[MERGED_FROM] = merged_from.to_stored();
        serde_json::to_vec(&stored).expect("a value with string keys")
    }

    /// Returns the objects that a policy was merged from. `None` if it names none, or if they were not recorded.
    pub fn merged_from(&self, id: Id) -> Option<&Arc<MergedFrom>> {
        self.merged_from.get(&id)
    }

    /// Returns the stored form of a policy at its apply; `None` if it was not recorded.
    pub(crate) fn unmerged(&self, id: Id) -> Option<&RoutingPolicy> {
        match self.merged_from.get(&id) {
            Some(merged_from) => Some(&merged_from.policy),
            None => self.policies.get(id).map(AsRef::as_ref).filter(|policy| !is_merged(policy)),
        }
    }

    pub(crate) fn put(&mut self, policy: RoutingPolicy, merged_from: Option<Arc<MergedFrom>>) {
        match merged_from {
            Some(merged_from) => drop(self.merged_from.insert(policy.meta.id, merged_from)),
            None => drop(self.merged_from.remove(&policy.meta.id)),
        }
        self.policies.put(policy).expect("policies have no unique keys");
    }

    pub(crate) fn remove(&mut self, id: Id, revision: Revision) {
        self.merged_from.remove(&id);
        self.policies.take(id, revision);
    }
}

impl MergedFrom {
    fn to_stored(&self) -> Value {
        let MergedFrom { policy, profile, chain, privacy_class } = self;
        let mut form = Map::new();
        form.insert("policy".into(), to_stored(policy));
        form.extend(profile.iter().map(|row| ("profile".into(), to_stored(row.as_ref()))));
        form.extend(chain.iter().map(|row| ("chain".into(), to_stored(row.as_ref()))));
        form.extend(privacy_class.iter().map(|row| ("privacy_class".into(), to_stored(row.as_ref()))));
        Value::Object(form)
    }

    fn from_stored(form: &Value) -> Result<MergedFrom, serde_json::Error> {
        fn row<R: Resource>(form: &Value, key: &str) -> Result<Option<Arc<R>>, serde_json::Error> {
            form.get(key).map(|stored| from_stored(stored).map(Arc::new)).transpose()
        }
        Ok(MergedFrom {
            policy: from_stored(&form["policy"])?,
            profile: row(form, "profile")?,
            chain: row(form, "chain")?,
            privacy_class: row(form, "privacy_class")?,
        })
    }
}

/// Reports whether a policy takes values from other objects.
fn is_merged(policy: &RoutingPolicy) -> bool {
    policy.profile.is_some() || policy.chain.is_some() || policy.privacy_class.is_some()
}

impl State {
    /// Makes the present policies, enabled or not, those that steer traffic. What they take from profiles, chains and
    /// classes is frozen with them.
    pub fn freeze_applied(&mut self) {
        self.applied = self.frozen();
    }

    /// Applies one policy as stored; the others stay as they were applied.
    pub fn freeze_policy(&mut self, id: Id) {
        let Some(policy) = self.routing_policies.get(id) else { return };
        let (whole, merged_from) = (self.resolved(policy).into_owned(), self.merged_from(policy));
        let mut applied = self.applied.clone();
        applied.put(whole, merged_from);
        self.set_applied(applied);
    }

    /// Returns the stored policies merged with their profiles, chains and classes.
    pub(super) fn frozen(&self) -> Applied {
        let mut applied = Applied {
            revision: self.revision,
            at: Some(self.now),
            policies: self.routing_policies.clone(),
            merged_from: CowMap::default(),
        };
        for policy in self.routing_policies.iter() {
            if let Cow::Owned(whole) = self.resolved(policy) {
                applied.put(whole, self.merged_from(policy));
            }
        }
        applied
    }

    fn merged_from(&self, policy: &RoutingPolicy) -> Option<Arc<MergedFrom>> {
        if !is_merged(policy) {
            return None;
        }
        let profile = self.referred::<Profile>(&policy.profile);
        let of_profile = |own: &Option<String>, field: fn(&Profile) -> &Option<String>| {
            own.clone().or_else(|| profile.and_then(|profile| field(profile).clone()))
        };
        let chain = of_profile(&policy.chain, |profile| &profile.chain);
        let class = of_profile(&policy.privacy_class, |profile| &profile.privacy_class);
        Some(Arc::new(MergedFrom {
            policy: policy.clone(),
            profile: profile.cloned(),
            chain: self.referred::<Chain>(&chain).cloned(),
            privacy_class: self.referred::<PrivacyClass>(&class).cloned(),
        }))
    }

    /// Replaces the applied policies. The applied revision advances only if no policy is pending afterwards, so that
    /// it stays behind the stored one as long as they differ.
    pub(crate) fn set_applied(&mut self, applied: Applied) {
        let revision = self.applied.revision;
        self.applied = Applied { revision, at: Some(self.now), ..applied };
        self.note_applied();
    }

    /// Replaces the applied policies by the same ones with their ends recorded. That is no apply.
    pub(crate) fn record_applied(&mut self, policies: Table<RoutingPolicy>) {
        self.applied.policies = policies;
        self.note_applied();
    }

    /// Advances the applied revision if no policy is pending.
    pub(crate) fn note_applied(&mut self) {
        if self.pending_policies() == 0 {
            self.applied.revision = self.revision;
        }
    }

    /// Returns true if the stored form of a policy is its applied form. Revisions and the times at which their ends
    /// were recorded do not count: an edit that was put back is no change.
    pub fn is_applied(&self, id: Id) -> bool {
        let (stored, applied) = (self.routing_policies.get(id), self.applied.policies.get(id));
        let (Some(stored), Some(applied)) = (stored, applied) else { return false };
        let whole = self.resolved(stored);
        if matches!(whole, Cow::Borrowed(_)) && applied.meta.revision == stored.meta.revision {
            return true;
        }
        let mut whole = whole.into_owned();
        whole.meta = applied.meta.clone();
        whole.ended_at = applied.ended_at;
        **applied == whole
    }

    /// Reports whether nothing but policies uses an object, directly or through a profile.
    pub(crate) fn serves_policies_only<R: Resource>(&self, row: &R) -> bool {
        let id = row.meta().id.to_string();
        let mut found = Found::new();
        for target in std::iter::once(id.as_str()).chain(row.alias()) {
            self.referring(R::NOUN, target, &mut found);
        }
        found.keys().all(|(collection, id)| match *collection {
            RoutingPolicy::COLLECTION => true,
            Profile::COLLECTION => {
                let profile = id.and_then(|id| self.profiles.get(id));
                profile.is_some_and(|profile| self.serves_policies_only(profile.as_ref()))
            }
            _ => false,
        })
    }
}
