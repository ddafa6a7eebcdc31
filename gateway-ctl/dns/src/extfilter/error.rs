//! Errors of the external filter backend. They never contain a credential.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the address must be like http://192.168.1.2 or https://pi.hole:8443, without user and password")]
    Url,
    #[error("the filter backend cannot be reached: {0}")]
    Unreachable(String),
    #[error("the filter backend did not answer in time")]
    Timeout,
    #[error("the filter backend wants a password and none is set")]
    PasswordWanted,
    #[error("the filter backend does not accept the password")]
    PasswordRefused,
    #[error("the filter backend wants a second factor: set an application password made by it")]
    SecondFactor,
    #[error("all sessions of the filter backend are taken (webserver.api.max_sessions there)")]
    NoSeat,
    #[error("the filter backend asks to try again later")]
    TooMany,
    #[error("the password in use may read, but change nothing: allow it to (webserver.api.app_sudo there)")]
    ReadOnly,
    #[error("the filter backend answered with status {0}")]
    Status(u16),
    #[error("the filter backend answered something else than the API of Pi-hole 6 does")]
    Malformed,
    #[error("the filter backend did not do as it was told")]
    NotObeyed,
}

impl Error {
    /// Reports whether the backend answered.
    pub fn was_answered(&self) -> bool {
        !matches!(self, Error::Url | Error::Unreachable(_) | Error::Timeout)
    }
}
