//! Sessions of signed-in users: durable, so that a restart signs no user out, and read from memory.
//!
//! A session contains its user and the user's epoch at the sign-in. It is valid only while the user exists, is
//! enabled and has that epoch. Deleting a user or changing a password therefore ends sessions in the same
//! transaction. The time of the last use is written at most once a minute. After a crash, a session may end that much
//! too early, but never too late.
//!
//! Their number is bounded for each user and in total. One more ends the least recently used one: to refuse it would
//! lock out the owner of a forgotten browser.

mod operations;

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_model::{Id, State};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::error::Error;
use super::schema::{META_TEXT, Rows, rows};

/// Maximum lifetime of a session from sign-in.
pub const ABSOLUTE: SignedDuration = SignedDuration::from_hours(12);
/// Maximum time between two requests of a session.
pub(super) const IDLE: SignedDuration = SignedDuration::from_mins(30);
/// Tolerance for a clock that was set back. Beyond it, the age of a session is unknown.
const CLOCK_SLACK: SignedDuration = SignedDuration::from_mins(5);
const SESSIONS: Rows<'static> = rows("sessions");
/// User to the time of the last sign-in, in microseconds.
const SIGN_INS: TableDefinition<'static, &'static [u8; 16], i64> = TableDefinition::new("sign_ins");
/// Key of the table `meta_text`: the signing key of session tokens, 32 bytes in base64.
const SIGNING_KEY: &str = "session_key";

/// Session of one sign-in.
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
    /// CSRF token that a page must send along with changes, to prove that it could read a response.
    pub csrf: String,
}

/// Omits the token.
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

    /// Reports whether the session has not expired.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let idle = now.duration_since(self.last_seen);
        now < self.expires_at && idle < IDLE && idle > -CLOCK_SLACK
    }

    /// Reports whether the session's user exists in this state, is enabled and has the same epoch.
    pub fn is_backed(&self, state: &State) -> bool {
        let user = state.users.get(self.user);
        user.is_some_and(|user| user.enabled && user.session_epoch == self.epoch)
    }
}

/// Sessions in memory.
pub(super) struct Sessions {
    key: Zeroizing<[u8; 32]>,
    held: Mutex<BTreeMap<Uuid, LiveSession>>,
    sign_ins: Mutex<BTreeMap<Id, Timestamp>>,
}

struct LiveSession {
    session: Session,
    /// Value of `last_seen` in the file.
    saved: Timestamp,
}

impl Sessions {
    /// Loads the sessions; makes the signing key if there is none. Unreadable rows are treated as ended sessions.
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
                held.insert(session.id, LiveSession { saved: session.last_seen, session });
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

    /// Drops all sessions from memory, after they were removed from the file.
    pub(super) fn forget(&self) {
        self.held.lock().clear();
        self.sign_ins.lock().clear();
    }
}

fn read_key(db: &Database) -> Result<Option<Zeroizing<[u8; 32]>>, Error> {
    let txn = db.begin_read().map_err(Error::at("read the session key"))?;
    let table = txn.open_table(META_TEXT).map_err(Error::at("read the session key"))?;
    let text = table.get(SIGNING_KEY).map_err(Error::at("read the session key"))?;
    // An unreadable key ends all sessions, like a lost key.
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

#[cfg(test)]
mod tests;
