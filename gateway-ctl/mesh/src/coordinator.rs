//! The coordinator: the roster, who is connected, and the views of all nodes. It opens no sockets.

mod connection;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::watch;

use crate::attempts::Attempts;
use crate::auth_key::{AuthKey, AuthKeyTerms};
use crate::derp::Switch;
use crate::keys::{KeyPair, MachineKey, NodeKey};
use crate::netmap::{MeshProfile, USER};
use crate::node::{Node, Presence};
use crate::roster::{Lifetimes, Registered, Roster};
use crate::wire::{Login, MapRequest, RegisterRequest, RegisterResponse, User};

pub(crate) use connection::{Connection, Next};

/// Returns the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Storage of the roster. A change holds once it is stored.
pub trait Ledger: Send + Sync {
    /// Stores the roster in place of the last one, for this reason.
    fn store(&self, roster: &Roster, change: &Change) -> Result<(), LedgerError>;
}

/// Change of the roster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    KeyCreated { id: String },
    NodeRegistered { id: u64, name: String },
    NodeLoggedOut { id: u64, name: String },
    NodeDescribed { id: u64, name: String },
    RoutesApproved { id: u64, name: String },
    NodeRemoved { id: u64, name: String },
    EphemeralRemoved { names: Vec<String> },
}

/// A roster that cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the change cannot be stored: {0}")]
pub struct LedgerError(pub String);

/// Parts of a coordinator.
pub struct Settings {
    /// Identity of the coordinator.
    pub identity: KeyPair,
    /// Identity of its relay; none if it has no relay.
    pub relay: Option<KeyPair>,
    pub profile: MeshProfile,
    pub lifetimes: Lifetimes,
    /// True if the relay serves nodes of the mesh only.
    pub verify_clients: bool,
}

/// A coordinator with its relay.
pub struct Coordinator {
    settings: Settings,
    ledger: Arc<dyn Ledger>,
    clock: Clock,
    /// Time since which nodes could connect.
    started: Timestamp,
    state: Mutex<Live>,
    /// Number of the last change that nodes see.
    changes: watch::Sender<u64>,
    switch: Arc<Switch>,
}

#[derive(Debug, Default)]
struct Live {
    roster: Roster,
    presences: HashMap<u64, Presence>,
    attempts: Attempts,
    streams: u64,
    /// Time of the last tick.
    ticked: Option<Timestamp>,
}

/// A node as the gateway shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: Node,
    pub presence: Presence,
}

impl Member {
    /// Tells whether the node reads its stream of maps.
    pub fn is_connected(&self) -> bool {
        self.presence.stream.is_some()
    }
}

impl Coordinator {
    /// Makes a coordinator of a stored roster.
    pub fn new(settings: Settings, roster: Roster, ledger: Arc<dyn Ledger>, clock: Clock) -> Arc<Self> {
        let (changes, _) = watch::channel(0);
        let started = clock();
        let state = Mutex::new(Live { roster, ..Live::default() });
        Arc::new(Self { settings, ledger, clock, started, state, changes, switch: Arc::default() })
    }

    /// Identity of the coordinator.
    pub fn identity(&self) -> &KeyPair {
        &self.settings.identity
    }

    /// Identity of the relay, if there is one.
    pub fn relay_identity(&self) -> Option<&KeyPair> {
        self.settings.relay.as_ref()
    }

    /// The relay.
    pub fn switch(&self) -> &Arc<Switch> {
        &self.switch
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Tells whether the relay serves this client.
    pub fn admits(&self, key: NodeKey) -> bool {
        !self.settings.verify_clients || self.state.lock().roster.admits(key, self.now())
    }

    /// Admits the node of a machine, or says why not.
    pub(crate) fn register(
        &self,
        machine: MachineKey,
        from: IpAddr,
        request: &RegisterRequest,
    ) -> RegisterResponse {
        let now = self.now();
        let mut state = self.state.lock();
        if !state.attempts.may_try(from, now) {
            return refusal("too many registrations were refused; try again in a minute");
        }
        let mut roster = state.roster.clone();
        let registered = match roster.register(machine, request, self.settings.lifetimes, now) {
            Ok(registered) => registered,
            Err(reason) => {
                state.attempts.refused(from, now);
                tracing::info!(%from, "a node was refused: {reason}");
                return refusal(&reason.to_string());
            }
        };
        let (Registered::Member(id) | Registered::LoggedOut(id)) = registered;
        let name = name(&roster, id).or_else(|| name(&state.roster, id)).unwrap_or_default();
        let change = match registered {
            Registered::Member(id) => Change::NodeRegistered { id, name },
            Registered::LoggedOut(id) => Change::NodeLoggedOut { id, name },
        };
        if let Err(error) = self.replace(&mut state, roster, &change, &*self.ledger) {
            return refusal(&error.to_string());
        }
        let owner = &self.settings.profile.owner;
        RegisterResponse {
            user: User { id: USER, display_name: owner.clone() },
            login: Login {
                id: USER,
                provider: "gateway".to_owned(),
                login_name: owner.clone(),
                display_name: owner.clone(),
            },
            node_key_expired: matches!(registered, Registered::LoggedOut(_)),
            machine_authorized: matches!(registered, Registered::Member(_)),
            ..RegisterResponse::default()
        }
    }

    /// Takes over what a node says about itself. Tells whether there is such a node.
    pub(crate) fn update(&self, machine: MachineKey, request: &MapRequest) -> Result<bool, LedgerError> {
        let mut state = self.state.lock();
        let Some(id) = state.roster.find(machine, request.node_key).map(|node| node.id) else {
            return Ok(false);
        };
        self.describe(&mut state, id, request)?;
        Ok(true)
    }

    fn describe(&self, state: &mut Live, id: u64, request: &MapRequest) -> Result<(), LedgerError> {
        if request.read_only {
            return Ok(());
        }
        if state.presences.entry(id).or_default().update(request) {
            self.announce();
        }
        let mut roster = state.roster.clone();
        let Some(node) = roster.node_mut(id) else { return Ok(()) };
        if node.describe(&request.hostinfo) {
            let change = Change::NodeDescribed { id, name: node.name.clone() };
            self.replace(state, roster, &change, &*self.ledger)?;
        }
        Ok(())
    }

    /// Runs a function while no change takes place. It must not call the coordinator.
    pub fn between_changes<T>(&self, run: impl FnOnce() -> T) -> T {
        let _state = self.state.lock();
        run()
    }

    /// Creates a pre-auth key, and returns it with its text; none if there are too many. The ledger is that of the caller.
    pub fn create_key(
        &self,
        terms: AuthKeyTerms,
        ledger: &dyn Ledger,
    ) -> Result<Option<(AuthKey, String)>, LedgerError> {
        let mut state = self.state.lock();
        let mut roster = state.roster.clone();
        let created = roster.add_key(terms, self.now()).map_err(|error| LedgerError(error.to_string()))?;
        let Some((key, text)) = created else { return Ok(None) };
        self.replace(&mut state, roster, &Change::KeyCreated { id: key.id.clone() }, ledger)?;
        Ok(Some((key, text)))
    }

    /// Sets the prefixes that a node may route. Returns whether there is such a node.
    pub fn approve_routes(
        &self,
        id: u64,
        routes: Vec<IpNet>,
        ledger: &dyn Ledger,
    ) -> Result<bool, LedgerError> {
        let mut state = self.state.lock();
        let mut roster = state.roster.clone();
        if !roster.approve_routes(id, routes) {
            return Ok(false);
        }
        let name = name(&roster, id).unwrap_or_default();
        self.replace(&mut state, roster, &Change::RoutesApproved { id, name }, ledger)?;
        Ok(true)
    }

    /// Removes a node, at once. Returns whether there was one.
    pub fn remove(&self, id: u64, ledger: &dyn Ledger) -> Result<bool, LedgerError> {
        let mut state = self.state.lock();
        let mut roster = state.roster.clone();
        let Some(node) = roster.remove(id) else { return Ok(false) };
        self.replace(&mut state, roster, &Change::NodeRemoved { id, name: node.name }, ledger)?;
        Ok(true)
    }

    /// All nodes.
    pub fn members(&self) -> Vec<Member> {
        let state = self.state.lock();
        let member = |node: &Node| Member {
            node: node.clone(),
            presence: state.presences.get(&node.id).cloned().unwrap_or_default(),
        };
        state.roster.nodes().map(member).collect()
    }

    /// Removes ephemeral nodes that are gone, and ends what has expired since the last call.
    pub fn tick(&self) -> Result<(), LedgerError> {
        let now = self.now();
        let mut state = self.state.lock();
        let mut roster = state.roster.clone();
        let names: Vec<String> = self
            .gone(&state, now)
            .into_iter()
            .filter_map(|id| roster.remove(id))
            .map(|node| node.name)
            .collect();
        let last = state.ticked.replace(now);
        if names.is_empty() {
            let is_due = |node: &Node| {
                node.key_expiry.is_some_and(|end| end <= now && last.is_none_or(|last| end > last))
            };
            let has_expired = state.roster.nodes().any(is_due);
            drop(state);
            if has_expired {
                self.announce();
                self.end_strangers();
            }
            return Ok(());
        }
        self.replace(&mut state, roster, &Change::EphemeralRemoved { names }, &*self.ledger)
    }

    /// Puts a stored roster in the place of the last one, and ends what it does not admit.
    fn replace(
        &self,
        state: &mut Live,
        roster: Roster,
        change: &Change,
        ledger: &dyn Ledger,
    ) -> Result<(), LedgerError> {
        if roster != state.roster {
            ledger.store(&roster, change)?;
            state.roster = roster;
            let Live { roster, presences, .. } = state;
            presences.retain(|id, _| roster.node(*id).is_some());
            if self.settings.verify_clients {
                let now = self.now();
                self.switch.retain(|key| roster.admits(key, now));
            }
            self.announce();
        }
        Ok(())
    }

    /// Ends connections of the relay that it does not serve any more.
    fn end_strangers(&self) {
        if self.settings.verify_clients {
            let (state, now) = (self.state.lock(), self.now());
            self.switch.retain(|key| state.roster.admits(key, now));
        }
    }

    /// Ephemeral nodes that are not connected, and were not for their time while they could.
    fn gone(&self, state: &Live, now: Timestamp) -> Vec<u64> {
        let connected = |id| state.presences.get(&id).is_some_and(|presence| presence.stream.is_some());
        let absent = |node: &Node| now.duration_since(node.last_seen.max(self.started));
        let nodes = state.roster.nodes().filter(|node| node.ephemeral && !connected(node.id));
        let nodes = nodes.filter(|node| absent(node) >= self.settings.lifetimes.ephemeral);
        nodes.map(|node| node.id).collect()
    }

    fn announce(&self) {
        self.changes.send_modify(|number| *number += 1);
    }
}

fn name(roster: &Roster, id: u64) -> Option<String> {
    roster.node(id).map(|node| node.name.clone())
}

fn refusal(reason: &str) -> RegisterResponse {
    RegisterResponse { error: reason.to_owned(), ..RegisterResponse::default() }
}
