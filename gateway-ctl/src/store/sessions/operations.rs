//! Session operations of the store: beginning, lookup, renewal and end.

use gateway_model::{Id, State};
use jiff::{SignedDuration, Timestamp};
use redb::ReadableTable;
use uuid::Uuid;

use super::{LiveSession, SESSIONS, SIGN_INS, Session, put, take};
use crate::store::Store;
use crate::store::audit::{self, AuditResult, AuditTicket};
use crate::store::error::Error;

/// Minimum interval between two writes of a session's last use.
const SAVE_EVERY: SignedDuration = SignedDuration::from_secs(60);
/// Maximum number of sessions of one user; a further one ends the least recently used.
pub(super) const PER_USER: usize = 50;
/// Maximum number of sessions of all users; a further one ends the least recently used.
pub(super) const IN_SUM: usize = 1_000;

impl Store {
    /// Returns the signing key of session tokens, which is made together with the store.
    pub fn session_key(&self) -> &[u8; 32] {
        &self.sessions.key
    }

    /// Returns the session if it has not expired and its user is still valid.
    pub fn session(&self, id: Uuid) -> Option<Session> {
        let session = self.sessions.held.lock().get(&id).map(|held| held.session.clone())?;
        (session.is_current(self.clock.now()) && session.is_backed(&self.current())).then_some(session)
    }

    /// Returns all valid sessions in order of their creation.
    pub fn sessions(&self) -> Vec<Session> {
        let (state, now) = (self.current(), self.clock.now());
        let counts = |session: &&Session| session.is_current(now) && session.is_backed(&state);
        let mut all: Vec<Session> = {
            let held = self.sessions.held.lock();
            held.values().map(|held| &held.session).filter(counts).cloned().collect()
        };
        all.sort_by_key(|session| (session.created_at, session.id));
        all
    }

    /// Returns the time of the user's last sign-in.
    pub fn last_sign_in(&self, user: Id) -> Option<Timestamp> {
        self.sessions.sign_ins.lock().get(&user).copied()
    }

    /// Creates a session, and removes ended ones. Blocks on the disk.
    pub fn open_session(&self, ticket: AuditTicket, session: Session) -> Result<(), Error> {
        let mut head = self.writer.lock();
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
        let mut sign_ins = self.sessions.sign_ins.lock();
        sign_ins.insert(session.user, now);
        sign_ins.retain(|user, _| state.users.contains(*user));
        let mut held = self.sessions.held.lock();
        held.retain(|id, _| !gone.contains(id));
        held.insert(session.id, LiveSession { saved: session.last_seen, session });
        Ok(())
    }

    /// Returns the sessions that have ended, and the least recently used ones beyond the limit of a user or of all
    /// users.
    fn ended(&self, state: &State, now: Timestamp, user: Id) -> Vec<Uuid> {
        let held = self.sessions.held.lock();
        let (kept, gone): (Vec<&Session>, Vec<&Session>) = held.values().map(|held| &held.session).partition(
            // A session that is ahead of a clock that was set back may become valid again.
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
        let mut head = self.writer.lock();
        let entry = audit::Entry::new(&head, ticket, AuditResult::Success, self.clock.now());
        let txn = self.db.begin_vital().map_err(Error::at("begin to write"))?;
        take(&txn, ids)?;
        audit::append(&txn, &entry)?;
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        self.sessions.held.lock().retain(|id, _| !ids.contains(id));
        Ok(())
    }

    /// Lets one session of a user survive a new epoch. The change of the epoch itself has its audit entry.
    pub fn keep_session(&self, id: Uuid, epoch: u32) -> Result<(), Error> {
        let Some(mut session) = self.sessions.held.lock().get(&id).map(|held| held.session.clone()) else {
            return Ok(());
        };
        session.epoch = epoch;
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        put(&txn, &[&session])?;
        txn.commit().map_err(Error::at("commit"))?;
        if let Some(held) = self.sessions.held.lock().get_mut(&id) {
            held.session.epoch = epoch;
        }
        Ok(())
    }

    /// Records the use of a session. Returns `true` if [`Store::save_session`] is due.
    pub fn note_use(&self, id: Uuid) -> bool {
        let now = self.clock.now();
        let mut held = self.sessions.held.lock();
        let Some(held) = held.get_mut(&id) else { return false };
        held.session.last_seen = now;
        let due = now.duration_since(held.saved) >= SAVE_EVERY;
        if due {
            held.saved = now;
        }
        due
    }

    /// Writes the time of the session's last use. Blocks on the disk.
    pub fn save_session(&self, id: Uuid) -> Result<(), Error> {
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        // Look up the session inside the transaction: one that was ended meanwhile must not come back.
        let session = self.sessions.held.lock().get(&id).map(|held| held.session.clone());
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
