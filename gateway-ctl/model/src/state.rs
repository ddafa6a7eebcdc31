//! All that is configured, as one value that is cheap to clone.
//!
//! A published state is never changed. An edit works on a clone (the draft, from [`State::begin`]) that
//! the store writes down and publishes as a whole, or drops.
//!
//! One list names each kind and its table, and a macro makes the fields, accessors and references of it: with an
//! accessor written for each kind, a forgotten table showed only when an object referred to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::edit::{Attempt, EditError};
use crate::id::{Id, MacAddr, Revision};
use crate::kinds::*;
use crate::problem::{Problems, Warning};
use crate::references::{Found, FoundObject, Hold, References};
use crate::registry::Kind;
use crate::resource::{Meta, Resource, Stored, ref_key};
use crate::secret::Secret;
use crate::secrets::{self, Scope, SecretVisitor};
use crate::settings::references::SETTING_REFERENCES;
use crate::settings::{Setting, Settings};
use crate::table::Table;

/// The state as its list of kinds: the tables, how a kind finds its own, and the list itself.
macro_rules! state {
    ($($field:ident: $kind:ty,)*) => {
        /// Everything stored.
        #[derive(Clone, Debug)]
        pub struct State {
            $(pub $field: Table<$kind>,)*
            /// Settings at runtime.
            pub settings: Settings,
            /// The policies that steer traffic: those at the time of the last apply.
            pub applied: Applied,
            pub revision: Revision,
            now: Timestamp,
            author: String,
            minted: u32,
            /// Node whose objects the draft writes.
            receiving: Option<Id>,
        }

        /// All kinds, in an order in which each comes after those it refers to.
        pub const KINDS: &[Kind] = &[$(Kind::of::<$kind>()),*];

        impl State {
            /// Returns a state without the built-in objects, which the store fills with rows.
            pub fn empty() -> State {
                State {
                    $($field: Table::default(),)*
                    settings: Settings::default(),
                    applied: Applied::default(),
                    revision: Revision(0),
                    now: Timestamp::UNIX_EPOCH,
                    author: String::new(),
                    minted: 0,
                    receiving: None,
                }
            }

            /// Finds the rows and the groups of settings that refer to the target.
            fn referring(&self, noun: &'static str, target: &str, found: &mut Found) {
                $(collect_references(&self.$field, noun, target, self, found);)*
                collect_setting_references(&self.settings, noun, target, found);
            }
        }

        /// Calls the visitor with each kind.
        #[cfg(test)]
        pub(crate) fn visit_kinds(visitor: &mut impl KindVisitor) {
            $(visitor.visit::<$kind>();)*
        }

        $(impl Stored for $kind {
            fn meta(&self) -> &Meta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut Meta {
                &mut self.meta
            }

            fn table(state: &State) -> &Table<Self> {
                &state.$field
            }

            fn table_mut(state: &mut State) -> &mut Table<Self> {
                &mut state.$field
            }
        })*
    };
}

/// Generic code that runs once for each kind.
#[cfg(test)]
pub(crate) trait KindVisitor {
    fn visit<R: Resource + Default + PartialEq + std::fmt::Debug>(&mut self);
}

state! {
    privacy_classes: PrivacyClass,
    proxies: Proxy,
    tunnels: Tunnel,
    chains: Chain,
    profiles: Profile,
    trust_classes: TrustClass,
    devices: Device,
    device_groups: DeviceGroup,
    routing_policies: RoutingPolicy,
    exceptions: Exception,
    bridges: Bridge,
    segments: Segment,
    presets: Preset,
    splitting_endpoints: SplittingEndpoint,
    test_definitions: TestDefinition,
    dns_filter_rules: DnsFilterRule,
    dns_zones: DnsZone,
    dns_records: DnsRecord,
    dns_forwarders: DnsForwarder,
    dns_rewrites: DnsRewrite,
    dns_allowlist: DnsAllow,
    dns_blocklist: DnsBlock,
    dns_presets: DnsPreset,
    threat_feeds: ThreatFeed,
    dhcp_reservations: DhcpReservation,
    federation_roles: FederationRole,
    nodes: Node,
    alert_rules: AlertRule,
    users: User,
    api_keys: ApiKey,
}

impl Default for State {
    fn default() -> State {
        State::new(Timestamp::UNIX_EPOCH)
    }
}

impl State {
    /// The state of a new installation: only the built-in objects.
    pub fn new(now: Timestamp) -> State {
        let mut state = State::empty();
        state.now = now;
        state.seed();
        state
    }

    /// Adds the built-in objects that are missing. True if there were any.
    pub fn seed(&mut self) -> bool {
        KINDS.iter().fold(false, |seeded, kind| kind.seed(self) | seeded)
    }

    /// A draft of the next state.
    pub fn begin(&self, now: Timestamp) -> State {
        let mut draft = self.clone();
        draft.revision = self.revision.next();
        draft.now = now;
        draft.author.clear();
        draft.minted = 0;
        draft.receiving = None;
        for kind in KINDS {
            kind.begin(&mut draft);
        }
        draft.settings.begin();
        draft
    }

    /// The time of the draft.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the author of the draft.
    pub fn author(&self) -> &str {
        &self.author
    }

    /// Says who makes the draft, for objects that keep it.
    pub fn sign(&mut self, author: &str) {
        author.clone_into(&mut self.author);
    }

    /// Stores a new row; its metadata is assigned here.
    pub fn create<R: Resource>(&mut self, mut row: R) -> Result<(Arc<R>, Vec<Warning>), EditError> {
        let slot = R::table(self).free_slot();
        let meta = row.meta_mut();
        meta.id = Id::mint(self.now, self.minted);
        meta.created_at = self.now;
        meta.slot = slot.unwrap_or_default();
        meta.origin_node = self.receiving;
        if slot.is_none() {
            return Err(EditError::LimitReached { resource_type: R::NOUN, limit: R::SLOTS - 1 });
        }
        self.minted += 1;
        self.write(row, None)
    }

    /// Replaces the row with the same id. `expected` is the caller's revision.
    pub fn replace<R: Resource>(
        &mut self,
        id: Id,
        expected: Option<Revision>,
        mut row: R,
    ) -> Result<(Arc<R>, Vec<Warning>), EditError> {
        let before = self.expect::<R>(id, expected)?;
        *row.meta_mut() = before.meta().clone();
        self.write(row, Some(before))
    }

    /// Changes a row in its table.
    pub fn update<R: Resource>(
        &mut self,
        id: Id,
        expected: Option<Revision>,
        change: impl FnOnce(&mut R),
    ) -> Result<(Arc<R>, Vec<Warning>), EditError> {
        let mut row = self.expect::<R>(id, expected)?.as_ref().clone();
        change(&mut row);
        self.replace(id, expected, row)
    }

    /// Deletes a row. Loose references yield to `force`, firm ones do not.
    pub fn remove<R: Resource>(
        &mut self,
        id: Id,
        expected: Option<Revision>,
        force: bool,
    ) -> Result<Arc<R>, EditError> {
        let row = self.expect::<R>(id, expected)?;
        self.admit_origin(row.as_ref())?;
        row.admit_delete(self)?;
        let references = self.references_of(row.as_ref());
        if references.firm > 0 || (references.loose > 0 && !force) {
            let (attempt, references) = (Attempt::Delete, Box::new(references));
            return Err(EditError::InUse { resource_type: R::NOUN, id, attempt, references });
        }
        if let Some(kept) = row.retired(self) {
            self.put(kept)?;
            return Ok(row);
        }
        row.release(self)?;
        let revision = self.revision;
        R::table_mut(self).take(id, revision);
        Ok(row)
    }

    /// The row, at the revision the caller expects.
    pub fn expect<R: Resource>(&self, id: Id, expected: Option<Revision>) -> Result<Arc<R>, EditError> {
        let row = R::table(self)
            .get(id)
            .ok_or_else(|| EditError::NotFound { resource_type: R::NOUN, id: id.to_string() })?;
        let current = row.meta().revision;
        match expected {
            Some(expected) if expected != current => {
                Err(EditError::Stale { resource_type: R::NOUN, expected, current })
            }
            _ => Ok(row.clone()),
        }
    }

    /// Returns the objects that refer to the row, in the current and in the applied policies. Each object counts once.
    pub fn references_of<R: Resource>(&self, row: &R) -> References {
        let id = row.meta().id;
        let mut targets = vec![id.to_string()];
        targets.extend(row.alias().map(str::to_owned));
        let mut found = Found::new();
        for target in &targets {
            self.referring(R::NOUN, target, &mut found);
        }
        let current = found.len();
        for target in &targets {
            collect_references(&self.applied.policies, R::NOUN, target, self, &mut found);
        }
        References::count(R::NOUN, id, &found, found.len() > current)
    }

    /// Reports whether an object refers to the target by this name.
    pub(crate) fn is_referred_as<R: Resource>(&self, target: &str) -> bool {
        let mut found = Found::new();
        self.referring(R::NOUN, target, &mut found);
        collect_references(&self.applied.policies, R::NOUN, target, self, &mut found);
        !found.is_empty()
    }

    /// Sets a value at runtime. The key's rules are the caller's.
    pub fn set(&mut self, key: &str, value: Value) {
        self.put_setting(key, value, Secret::default());
    }

    /// Sets a secret at runtime: it is stored sealed and shown as `true`. A secret that is not set removes the key.
    pub fn set_secret(&mut self, key: &str, secret: Secret) {
        if secret.is_set() {
            self.put_setting(key, true.into(), secret);
        } else {
            self.unset(key);
        }
    }

    /// Stores a setting. One that is set to the value it has keeps its revision.
    fn put_setting(&mut self, key: &str, value: Value, secret: Secret) {
        if self.settings.setting(key).is_some_and(|had| had.value == value && had.secret == secret) {
            return;
        }
        let setting = Setting { value, revision: self.revision, updated_at: self.now, secret };
        self.settings.put(key, setting);
    }

    /// Takes a runtime value back. False if there is none.
    pub fn unset(&mut self, key: &str) -> bool {
        self.settings.take(key, self.revision)
    }

    pub fn device_by_mac(&self, mac: MacAddr) -> Option<&Arc<Device>> {
        self.devices.by_key(&mac.to_string())
    }

    pub fn tunnel_by_name(&self, name: &str) -> Option<&Arc<Tunnel>> {
        self.tunnels.by_key(name)
    }

    pub fn trust_class_by_name(&self, name: &str) -> Option<&Arc<TrustClass>> {
        self.trust_classes.by_key(name)
    }

    /// The groups that a device is a member of.
    pub fn groups_of(&self, device: Id) -> impl Iterator<Item = &Arc<DeviceGroup>> {
        self.device_groups.with_key(&ref_key(Device::NOUN, &device.to_string()))
    }

    /// Removes rows that belong to another one that goes.
    pub(crate) fn forget<R: Resource>(&mut self, ids: &[Id]) {
        let revision = self.revision;
        for id in ids {
            R::table_mut(self).take(*id, revision);
        }
    }

    fn write<R: Resource>(
        &mut self,
        mut row: R,
        before: Option<Arc<R>>,
    ) -> Result<(Arc<R>, Vec<Warning>), EditError> {
        row.prepare();
        let mut problems = Problems::new();
        row.validate(self, &mut problems);
        if !problems.is_empty() {
            return Err(EditError::Invalid(problems));
        }
        let (_, warnings) = problems.into_parts();
        let is_foreign = |before: &&R| before.meta().origin_node != self.receiving;
        if let Some(before) = before.as_deref().filter(is_foreign)
            && !same_content(before, &row)
        {
            self.admit_origin(before)?;
        }
        row.admit(before.as_deref(), self)?;
        let id = row.meta().id;
        let unchanged = before.map(|before| Unchanged::of(before, self));
        self.put(row)?;
        // The hooks get a clone of the written row, because they may change it.
        let written = R::table(self).get(id).expect("it was just put there").as_ref().clone();
        written.apply_consequences(self)?;
        if let Some(unchanged) = unchanged {
            unchanged.restore(self);
        }
        let written = R::table(self).get(id).expect("settling removes nothing").clone();
        Ok((written, warnings))
    }

    /// Passes each sealed secret to `visit`, which may replace it by an equal one. The object, its revision and its
    /// time stay.
    pub fn visit_secrets(&mut self, scope: Scope, visit: &mut SecretVisitor<'_>) {
        for kind in KINDS.iter().filter(|kind| kind.sealed && !kind.secrets.is_empty()) {
            kind.visit_secrets(self, scope, visit);
        }
        secrets::visit_table(&mut self.applied.policies, scope, visit);
        self.settings.visit_secrets(scope, visit);
    }

    /// Writes without the checks of [`Resource::validate`]: for rows that are valid already.
    pub(crate) fn put<R: Resource>(&mut self, mut row: R) -> Result<(), EditError> {
        let meta = row.meta_mut();
        meta.updated_at = self.now;
        meta.revision = self.revision;
        R::table_mut(self).put(row).map_err(|clash| EditError::Conflict {
            resource_type: R::NOUN,
            message: format!("another {} has this {} already", R::NOUN.replace('_', " "), clash.field),
            field: clash.field,
            existing_id: clash.existing,
        })
    }
}

fn collect_references<R: Resource>(
    table: &Table<R>,
    noun: &'static str,
    target: &str,
    state: &State,
    found: &mut Found,
) {
    for row in table.with_key(&ref_key(noun, target)).filter(|row| row.is_live(state.now)) {
        let object = found.entry((R::COLLECTION, Some(row.meta().id))).or_insert_with(|| FoundObject {
            noun: R::NOUN,
            name: row.label().to_owned(),
            holds: BTreeSet::new(),
            loss: None,
        });
        let refs = row.refs();
        let holds = refs.iter().filter(|r| r.kind == noun && r.target == target).map(|r| r.hold);
        object.add(holds, row.loss_of(noun, target, state));
    }
}

fn collect_setting_references(settings: &Settings, noun: &'static str, target: &str, found: &mut Found) {
    for reference in SETTING_REFERENCES.iter().filter(|reference| reference.target == noun) {
        let named = settings.get(reference.key).and_then(|group| group.get(reference.field)?.as_str());
        if named == Some(target) {
            let (name, holds) = (reference.key.to_owned(), BTreeSet::from([Hold::Loose]));
            let object = FoundObject { noun: reference.noun, name, holds, loss: None };
            found.insert((reference.key, None), object);
        }
    }
}

mod applied;
mod origin;
mod parts;
mod unchanged;

pub use applied::{Applied, MergedFrom};
pub use parts::{PartError, StatePart};
use planned::same_content;
use unchanged::Unchanged;

pub(crate) mod planned;

#[cfg(test)]
mod tests;
