//! Errors of the external filter backend. They never contain a credential.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the address must be like http://192.168.1.2 or https://pi.hole:8443, without user and password")]
    Url,
    #[error("the filter backend cannot be reached: {0}")]
    Unreachable(String),
    #[error("the filter backend did not answer in time")]
    Timeout,
    #[error("the filter backend requires a password, and none is set")]
    PasswordWanted,
    #[error("the filter backend does not accept the password")]
    PasswordRefused,
    #[error("the filter backend requires a second factor: set one of its application passwords")]
    SecondFactor,
    #[error("no free session at the filter backend (webserver.api.max_sessions)")]
    NoSeat,
    #[error("the filter backend is rate limiting: try again later")]
    TooMany,
    #[error("the password has no write access: allow it at the filter backend (webserver.api.app_sudo)")]
    ReadOnly,
    #[error("the filter backend answered with status {0}")]
    Status(u16),
    #[error("unexpected reply from the filter backend: not the API of Pi-hole 6")]
    Malformed,
}

impl Error {
    /// Reports whether the backend answered.
    pub fn was_answered(&self) -> bool {
        !matches!(self, Error::Url | Error::Unreachable(_) | Error::Timeout)
    }
}
