//! Session with the backend. The backend limits the number of sessions, so the gateway uses one until it expires and
//! then renews it.

use std::time::Duration;

use gateway_model::Secret;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::client::{Answer, Client};
use super::error::Error;

/// Wait before a rejected password is tried again. Backends lock out clients that guess passwords.
const REFUSED_FOR: Duration = Duration::from_secs(60);

pub(super) struct Session {
    client: Client,
    password: Secret,
    seat: Mutex<Login>,
}

#[derive(Default)]
enum Login {
    #[default]
    None,
    Taken(Zeroizing<String>),
    /// The backend needs no login.
    Open,
    Refused(Instant, Error),
}

impl Session {
    pub(super) fn new(client: Client, password: Secret) -> Session {
        Session { client, password, seat: Mutex::default() }
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Error> {
        let mut expired: Option<Zeroizing<String>> = None;
        loop {
            let session = self.session(expired.as_ref()).await?;
            let reply = session.as_ref().map(|session| session.as_str());
            let answer = self.client.request(Method::GET, path, reply, None).await?;
            match (answer.0, session) {
                (status, _) if status.is_success() => return Ok(answer.1),
                (StatusCode::UNAUTHORIZED, None) => return Err(Error::PasswordWanted),
                (StatusCode::UNAUTHORIZED, Some(session)) if expired.is_none() => expired = Some(session),
                (StatusCode::UNAUTHORIZED, Some(_)) => return Err(Error::PasswordRefused),
                _ => return Err(refusal(&answer)),
            }
        }
    }

    /// Returns the session in use, or a new one if `expired` is the session in use. None: no session is needed.
    async fn session(&self, expired: Option<&Zeroizing<String>>) -> Result<Option<Zeroizing<String>>, Error> {
        let mut seat = self.seat.lock().await;
        match &*seat {
            Login::Taken(session) if Some(session) != expired => return Ok(Some(session.clone())),
            Login::Open if self.password.is_set() => return Ok(None),
            Login::Refused(until, error) if *until > Instant::now() => return Err(error.clone()),
            _ => {}
        }
        if !self.password.is_set() {
            return Ok(None);
        }
        *seat = Login::None;
        *seat = self.log_in().await?;
        match &*seat {
            Login::Taken(session) => Ok(Some(session.clone())),
            Login::Refused(_, error) => Err(error.clone()),
            Login::Open | Login::None => Ok(None),
        }
    }

    async fn log_in(&self) -> Result<Login, Error> {
        let body = json!({ "password": self.password.expose() });
        let answer = self.client.request(Method::POST, "auth", None, Some(&body)).await?;
        let (status, body) = &answer;
        let refused = |error: Error| Ok(Login::Refused(Instant::now() + REFUSED_FOR, error));
        let session = &body["session"];
        match *status {
            StatusCode::UNAUTHORIZED => refused(Error::PasswordRefused),
            StatusCode::BAD_REQUEST if says(body, "2FA") => refused(Error::SecondFactor),
            status if status.is_success() => match (&session["valid"], session["sid"].as_str()) {
                (Value::Bool(true), Some(session)) => Ok(Login::Taken(session.to_owned().into())),
                (Value::Bool(true), None) => Ok(Login::Open),
                (Value::Bool(false), _) => refused(Error::PasswordRefused),
                _ => Err(Error::Malformed),
            },
            _ => Err(refusal(&answer)),
        }
    }

    pub(super) async fn log_out(&self) -> Result<(), Error> {
        let mut seat = self.seat.lock().await;
        let Login::Taken(session) = std::mem::take(&mut *seat) else {
            return Ok(());
        };
        let (status, body) = self.client.request(Method::DELETE, "auth", Some(&session), None).await?;
        // A session that has expired meanwhile counts as ended.
        let gone = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::GONE | StatusCode::NOT_FOUND);
        if status.is_success() || gone { Ok(()) } else { Err(refusal(&(status, body))) }
    }
}

/// Returns the error for an unsuccessful reply. The error excludes the backend's text, because its content is unknown.
fn refusal((status, body): &Answer) -> Error {
    match *status {
        StatusCode::TOO_MANY_REQUESTS if body["error"]["key"] == "api_seats_exceeded" => Error::NoSeat,
        StatusCode::TOO_MANY_REQUESTS => Error::TooMany,
        StatusCode::FORBIDDEN => Error::ReadOnly,
        status => Error::Status(status.as_u16()),
    }
}

fn says(body: &Value, what: &str) -> bool {
    body["error"]["message"].as_str().is_some_and(|message| message.contains(what))
}
