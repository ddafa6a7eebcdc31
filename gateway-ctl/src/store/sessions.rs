//! Sessions of signed-in users: durable, so that a restart signs nobody out, and read from memory.
//!
//! A session names its user and the epoch that the user had: it counts only while the user exists, is enabled and has
//! that epoch, so deleting a user or changing a password ends sessions in the same transaction. When a session was
//! last used is written down at most once a minute; after a crash it may end that much too early, never too late.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_model::{Id, State};
use jiff::{SignedDuration, Timestamp};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::Store;
use super::audit::{self, AuditResult, AuditTicket};
use super::error::Error;
use super::schema::{META_TEXT, Rows, rows};

/// From sign-in to the end, whatever happens.
pub const ABSOLUTE: SignedDuration = SignedDuration::from_hours(12);
/// From the last request to the end.
pub const IDLE: SignedDuration = SignedDuration::from_mins(30);
/// How often the last use is written down.
const SAVE_EVERY: SignedDuration = SignedDuration::from_secs(60);
/// A clock that was set back by more than this leaves no way to tell how old a session is.
const CLOCK_SLACK: SignedDuration = SignedDuration::from_mins(5);
/// Of one user; one more ends the one that was unused the longest.
const PER_USER: usize = 50;
/// Of all users; one more ends the one that was unused the longest.
const IN_SUM: usize = 1_000;

const SESSIONS: Rows<'static> = rows("sessions");
/// User to the time of the last sign-in, in microseconds.
const SIGN_INS: TableDefinition<'static, &'static [u8; 16], i64> = TableDefinition::new("sign_ins");
/// Key of the table `meta_text`: what session tokens are signed with, 32 bytes in base64.
const SIGNING_KEY: &str = "session_key";

/// One sign-in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub id: Uuid,
    pub user: Id,
    /// [`gateway_model::kinds::User::session_epoch`] at the sign-in.
    pub epoch: u32,
    pub created_at: Timestamp,
    pub last_seen: Timestamp,
    pub expires_at: Timestamp,
    pub ip: Option<IpAddr>,
    pub user_agent: Option<String>,
    /// What a page must send along with changes, to prove that it could read an answer.
    pub csrf: String,
}

/// Without the token.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).field("user", &self.user).finish_non_exhaustive()
    }
}

impl Session {
    pub fn new(
        user: Id,
        epoch: u32,
        now: Timestamp,
        ip: Option<IpAddr>,
        user_agent: Option<&str>,
    ) -> Session {
        let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(200).collect();
        Session {
            id: Uuid::new_v4(),
            user,
            epoch,
            created_at: now,
            last_seen: now,
            expires_at: now.checked_add(ABSOLUTE).unwrap_or(Timestamp::MAX),
            ip,
            user_agent: user_agent.map(clean),
            csrf: format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
        }
    }

    /// Whether its time is not over.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let idle = now.duration_since(self.last_seen);
        now < self.expires_at && idle < IDLE && idle > -CLOCK_SLACK
    }

    /// Whether it stands for a user of this state.
    pub fn is_backed(&self, state: &State) -> bool {
        let user = state.users.get(self.user);
        user.is_some_and(|user| user.enabled && user.session_epoch == self.epoch)
    }
}

/// What is kept in memory.
pub(super) struct Sessions {
    key: Zeroizing<[u8; 32]>,
    held: Mutex<BTreeMap<Uuid, Held>>,
    sign_ins: Mutex<BTreeMap<Id, Timestamp>>,
}

struct Held {
    session: Session,
    /// `last_seen` as written down.
    saved: Timestamp,
}

impl Sessions {
    /// Reads them back; makes the signing key if there is none. Rows that cannot be read are sessions that ended.
    pub(super) fn load(db: &Database) -> Result<Sessions, Error> {
        let key = match read_key(db)? {
            Some(key) => key,
            None => make_key(db)?,
        };
        let txn = db.begin_read().map_err(Error::at("read the sessions"))?;
        let mut held = BTreeMap::new();
        let table = txn.open_table(SESSIONS).map_err(Error::at("read the sessions"))?;
        for row in table.iter().map_err(Error::at("read the sessions"))? {
            let (_, json) = row.map_err(Error::at("read the sessions"))?;
            if let Ok(session) = serde_json::from_slice::<Session>(json.value()) {
                held.insert(session.id, Held { saved: session.last_seen, session });
            }
        }
        let mut sign_ins = BTreeMap::new();
        let table = txn.open_table(SIGN_INS).map_err(Error::at("read the sessions"))?;
        for row in table.iter().map_err(Error::at("read the sessions"))? {
            let (user, at) = row.map_err(Error::at("read the sessions"))?;
            if let Ok(at) = Timestamp::from_microsecond(at.value()) {
                sign_ins.insert(Id::from_bytes(*user.value()), at);
            }
        }
        Ok(Sessions { key, held: Mutex::new(held), sign_ins: Mutex::new(sign_ins) })
    }

    /// All of them are gone from the file.
    pub(super) fn forget(&self) {
        self.held().clear();
        self.sign_ins.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Uuid, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_key(db: &Database) -> Result<Option<Zeroizing<[u8; 32]>>, Error> {
    let txn = db.begin_read().map_err(Error::at("read the session key"))?;
    let table = txn.open_table(META_TEXT).map_err(Error::at("read the session key"))?;
    let text = table.get(SIGNING_KEY).map_err(Error::at("read the session key"))?;
    // A key that cannot be read ends all sessions, which is what a lost key means.
    let bytes = text.and_then(|text| STANDARD.decode(text.value()).ok()).map(Zeroizing::new);
    Ok(bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok()).map(Zeroizing::new))
}

fn make_key(db: &Database) -> Result<Zeroizing<[u8; 32]>, Error> {
    let mut key = Zeroizing::new([0; 32]);
    getrandom::fill(key.as_mut_slice()).expect("a booted kernel has random numbers");
    let text = Zeroizing::new(STANDARD.encode(key.as_slice()));
    let txn = db.begin_write().map_err(Error::at("write the session key"))?;
    {
        let mut table = txn.open_table(META_TEXT).map_err(Error::at("write the session key"))?;
        table.insert(SIGNING_KEY, text.as_str()).map_err(Error::at("write the session key"))?;
    }
    txn.commit().map_err(Error::at("write the session key"))?;
    Ok(key)
}

fn put(txn: &WriteTransaction, sessions: &[&Session]) -> Result<(), Error> {
    let mut table = txn.open_table(SESSIONS).map_err(Error::at("write the session"))?;
    for session in sessions {
        let json = serde_json::to_vec(session).expect("a session is a struct with string keys");
        table.insert(session.id.as_bytes(), json.as_slice()).map_err(Error::at("write the session"))?;
    }
    Ok(())
}

fn take(txn: &WriteTransaction, ids: &[Uuid]) -> Result<(), Error> {
    let mut table = txn.open_table(SESSIONS).map_err(Error::at("end the session"))?;
    for id in ids {
        table.remove(id.as_bytes()).map_err(Error::at("end the session"))?;
    }
    Ok(())
}

impl Store {
    /// What session tokens are signed with. Made with the store.
    pub fn session_key(&self) -> &[u8; 32] {
        &self.sessions.key
    }

    /// The session, if its time is not over and its user still stands behind it.
    pub fn session(&self, id: Uuid) -> Option<Session> {
        let session = self.sessions.held().get(&id).map(|held| held.session.clone())?;
        (session.is_current(self.clock.now()) && session.is_backed(&self.current())).then_some(session)
    }

    /// All that count, in the order of their beginning.
    pub fn sessions(&self) -> Vec<Session> {
        let (state, now) = (self.current(), self.clock.now());
        let counts = |session: &&Session| session.is_current(now) && session.is_backed(&state);
        let mut all: Vec<Session> = {
            let held = self.sessions.held();
            held.values().map(|held| &held.session).filter(counts).cloned().collect()
        };
        all.sort_by_key(|session| (session.created_at, session.id));
        all
    }

    /// When the user last signed in.
    pub fn last_sign_in(&self, user: Id) -> Option<Timestamp> {
        self.sessions.sign_ins.lock().unwrap_or_else(PoisonError::into_inner).get(&user).copied()
    }

    /// Begins a session, and clears away those that are over. Blocks on the disk.
    pub fn open_session(&self, ticket: AuditTicket, session: Session) -> Result<(), Error> {
        let mut head = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, state) = (self.clock.now(), self.current());
        let gone = self.ended(&state, now, session.user);
        let entry = audit::Entry::new(&head, ticket, AuditResult::Success, now);
        let txn = self.db.begin_vital().map_err(Error::at("begin to write"))?;
        put(&txn, &[&session])?;
        take(&txn, &gone)?;
        {
            let mut table = txn.open_table(SIGN_INS).map_err(Error::at("write the session"))?;
            table
                .insert(session.user.as_bytes(), now.as_microsecond())
                .map_err(Error::at("write the session"))?;
            table
                .retain(|user, _| state.users.contains(Id::from_bytes(*user)))
                .map_err(Error::at("write the session"))?;
        }
        audit::append(&txn, &entry)?;
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        let mut sign_ins = self.sessions.sign_ins.lock().unwrap_or_else(PoisonError::into_inner);
        sign_ins.insert(session.user, now);
        sign_ins.retain(|user, _| state.users.contains(*user));
        let mut held = self.sessions.held();
        held.retain(|id, _| !gone.contains(id));
        held.insert(session.id, Held { saved: session.last_seen, session });
        Ok(())
    }

    /// Sessions that are over, and the least recently used ones of a user, or of all, with too many.
    fn ended(&self, state: &State, now: Timestamp, user: Id) -> Vec<Uuid> {
        let held = self.sessions.held();
        let (kept, gone): (Vec<&Session>, Vec<&Session>) = held.values().map(|held| &held.session).partition(
            // Behind a clock that was set back a session may count again.
            |session| session.is_backed(state) && (session.is_current(now) || now < session.last_seen),
        );
        let mut gone: Vec<Uuid> = gone.into_iter().map(|session| session.id).collect();
        let mut kept = kept;
        kept.sort_by_key(|session| session.last_seen);
        let own = kept.iter().filter(|session| session.user == user);
        let surplus = (own.clone().count() + 1).saturating_sub(PER_USER);
        let surplus: Vec<Uuid> = own.take(surplus).map(|session| session.id).collect();
        kept.retain(|session| !surplus.contains(&session.id));
        let too_many = (kept.len() + 1).saturating_sub(IN_SUM);
        gone.extend(surplus);
        gone.extend(kept.iter().take(too_many).map(|session| session.id));
        gone
    }

    /// Ends sessions. Blocks on the disk.
    pub fn close_sessions(&self, ticket: AuditTicket, ids: &[Uuid]) -> Result<(), Error> {
        let mut head = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = audit::Entry::new(&head, ticket, AuditResult::Success, self.clock.now());
        let txn = self.db.begin_vital().map_err(Error::at("begin to write"))?;
        take(&txn, ids)?;
        audit::append(&txn, &entry)?;
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        self.sessions.held().retain(|id, _| !ids.contains(id));
        Ok(())
    }

    /// Lets one session of a user outlive a new epoch. The change of the epoch itself has its audit entry.
    pub fn keep_session(&self, id: Uuid, epoch: u32) -> Result<(), Error> {
        let Some(mut session) = self.sessions.held().get(&id).map(|held| held.session.clone()) else {
            return Ok(());
        };
        session.epoch = epoch;
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        put(&txn, &[&session])?;
        txn.commit().map_err(Error::at("commit"))?;
        if let Some(held) = self.sessions.held().get_mut(&id) {
            held.session.epoch = epoch;
        }
        Ok(())
    }

    /// Notes that a session was used. True: it is time to [`Store::save_session`].
    pub fn note_use(&self, id: Uuid) -> bool {
        let now = self.clock.now();
        let mut held = self.sessions.held();
        let Some(held) = held.get_mut(&id) else { return false };
        held.session.last_seen = now;
        let due = now.duration_since(held.saved) >= SAVE_EVERY;
        if due {
            held.saved = now;
        }
        due
    }

    /// Writes down when the session was last used. Blocks on the disk.
    pub fn save_session(&self, id: Uuid) -> Result<(), Error> {
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        // Looked up inside the transaction: one that was ended meanwhile must not come back.
        let session = self.sessions.held().get(&id).map(|held| held.session.clone());
        let known = {
            let table = txn.open_table(SESSIONS).map_err(Error::at("write the session"))?;
            let row = table.get(id.as_bytes()).map_err(Error::at("write the session"))?;
            row.is_some()
        };
        match session {
            Some(session) if known => put(&txn, &[&session])?,
            _ => return Ok(()),
        }
        txn.commit().map_err(Error::at("commit"))
    }
}

#[cfg(test)]
mod tests;
