//! API errors: code, status, message and details.
//!
//! Only this module converts errors of lower layers into codes and statuses.

use std::fmt;

use gateway_ctl::store::{self, CommitError, Pending, SafeError};
use gateway_model::references::References;
use gateway_model::{Attempt, EditError, Problems};
use gateway_outbound::causes::with_causes;
use http::StatusCode;
use serde_json::{Map, Value, json};

/// Error codes of the interface specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    BadRequest,
    InvalidParameter,
    Unauthenticated,
    InvalidCredentials,
    SessionExpired,
    Forbidden,
    OriginNotAllowed,
    SetupCodeRequired,
    NotFound,
    RouteNotFound,
    MethodNotAllowed,
    PolicyConflict,
    Conflict,
    InUse,
    InvalidState,
    AlreadyConfigured,
    LastAdmin,
    InterfaceProtected,
    LimitReached,
    ApplyInProgress,
    PreconditionFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    ValidationFailed,
    UnknownReference,
    DecryptFailed,
    RateLimited,
    LoginThrottled,
    Internal,
    SecretsRotationFailed,
    ApplyFailed,
    NotSupported,
    UpstreamFailed,
    DependencyFailed,
    UpstreamTimeout,
    NotReady,
    StorageFull,
}

impl Code {
    /// All codes, for the documentation.
    pub const ALL: [Code; 37] = [
        Code::BadRequest,
        Code::InvalidParameter,
        Code::Unauthenticated,
        Code::InvalidCredentials,
        Code::SessionExpired,
        Code::Forbidden,
        Code::OriginNotAllowed,
        Code::SetupCodeRequired,
        Code::NotFound,
        Code::RouteNotFound,
        Code::MethodNotAllowed,
        Code::PolicyConflict,
        Code::Conflict,
        Code::InUse,
        Code::InvalidState,
        Code::AlreadyConfigured,
        Code::LastAdmin,
        Code::InterfaceProtected,
        Code::LimitReached,
        Code::ApplyInProgress,
        Code::PreconditionFailed,
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
        Code::ValidationFailed,
        Code::UnknownReference,
        Code::DecryptFailed,
        Code::RateLimited,
        Code::LoginThrottled,
        Code::Internal,
        Code::SecretsRotationFailed,
        Code::ApplyFailed,
        Code::NotSupported,
        Code::UpstreamFailed,
        Code::DependencyFailed,
        Code::UpstreamTimeout,
        Code::NotReady,
        Code::StorageFull,
    ];

    /// Returns the code as it appears in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::BadRequest => "bad_request",
            Code::InvalidParameter => "invalid_parameter",
            Code::Unauthenticated => "unauthenticated",
            Code::InvalidCredentials => "invalid_credentials",
            Code::SessionExpired => "session_expired",
            Code::Forbidden => "forbidden",
            Code::OriginNotAllowed => "origin_not_allowed",
            Code::SetupCodeRequired => "setup_code_required",
            Code::NotFound => "not_found",
            Code::RouteNotFound => "route_not_found",
            Code::MethodNotAllowed => "method_not_allowed",
            Code::PolicyConflict => "policy_conflict",
            Code::Conflict => "conflict",
            Code::InUse => "in_use",
            Code::InvalidState => "invalid_state",
            Code::AlreadyConfigured => "already_configured",
            Code::LastAdmin => "last_admin",
            Code::InterfaceProtected => "interface_protected",
            Code::LimitReached => "limit_reached",
            Code::ApplyInProgress => "apply_in_progress",
            Code::PreconditionFailed => "precondition_failed",
            Code::PayloadTooLarge => "payload_too_large",
            Code::UnsupportedMediaType => "unsupported_media_type",
            Code::ValidationFailed => "validation_failed",
            Code::UnknownReference => "unknown_reference",
            Code::DecryptFailed => "decrypt_failed",
            Code::RateLimited => "rate_limited",
            Code::LoginThrottled => "login_throttled",
            Code::Internal => "internal",
            Code::SecretsRotationFailed => "secrets_rotation_failed",
            Code::ApplyFailed => "apply_failed",
            Code::NotSupported => "not_supported",
            Code::UpstreamFailed => "upstream_failed",
            Code::DependencyFailed => "dependency_failed",
            Code::UpstreamTimeout => "upstream_timeout",
            Code::NotReady => "not_ready",
            Code::StorageFull => "storage_full",
        }
    }

    pub fn status(self) -> StatusCode {
        match self {
            Code::BadRequest | Code::InvalidParameter => StatusCode::BAD_REQUEST,
            Code::Unauthenticated | Code::InvalidCredentials | Code::SessionExpired => {
                StatusCode::UNAUTHORIZED
            }
            Code::Forbidden | Code::OriginNotAllowed | Code::SetupCodeRequired => StatusCode::FORBIDDEN,
            Code::NotFound | Code::RouteNotFound => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::PolicyConflict
            | Code::Conflict
            | Code::InUse
            | Code::InvalidState
            | Code::AlreadyConfigured
            | Code::LastAdmin
            | Code::InterfaceProtected
            | Code::LimitReached
            | Code::ApplyInProgress => StatusCode::CONFLICT,
            Code::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::ValidationFailed | Code::UnknownReference | Code::DecryptFailed => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Code::RateLimited | Code::LoginThrottled => StatusCode::TOO_MANY_REQUESTS,
            Code::Internal | Code::SecretsRotationFailed | Code::ApplyFailed => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Code::NotSupported => StatusCode::NOT_IMPLEMENTED,
            Code::UpstreamFailed | Code::DependencyFailed => StatusCode::BAD_GATEWAY,
            Code::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
            Code::NotReady => StatusCode::SERVICE_UNAVAILABLE,
            Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

/// Error response. The dispatcher adds the request id and the headers.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub code: Code,
    /// Human-readable message.
    pub message: String,
    pub details: Map<String, Value>,
    /// Value of `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// The audit log already contains the entry of this failure.
    pub recorded: bool,
}

impl ApiError {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Map::new(), retry_after: None, recorded: false }
    }

    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub fn invalid_parameter(name: &str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParameter, message).detail("parameter", name)
    }

    pub fn not_found(resource_type: &str, id: &str) -> Self {
        Self::new(Code::NotFound, format!("There is no {} {id:?}.", resource_type.replace('_', " ")))
            .detail("resource_type", resource_type)
            .detail("id", id)
    }

    pub fn not_supported(needs: &str) -> Self {
        Self::new(Code::NotSupported, format!("This operation is not supported: it needs {needs}."))
            .detail("needs", needs)
    }

    pub fn not_ready(message: impl Into<String>) -> Self {
        let mut error = Self::new(Code::NotReady, message);
        error.retry_after = Some(5);
        error
    }

    /// Builds an internal error. Logs the cause under the request id and hides it from the client.
    pub fn internal(cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = %with_causes(cause), "request failed");
        Self::new(Code::Internal, "The gateway could not do this; its log says why, under the request id.")
    }

    pub fn precondition_failed(current_etag: &str) -> Self {
        Self::new(Code::PreconditionFailed, "The object has changed since it was read.")
            .detail("current_etag", current_etag)
    }

    /// Builds the error of a change that waits for its confirmation.
    pub fn apply_in_progress(pending: &Pending) -> Self {
        Self::new(
            Code::ApplyInProgress,
            "An earlier change waits to be confirmed; confirm it or take it back first.",
        )
        .detail("pending_confirm_until", pending.until.to_string())
        .detail("snapshot", pending.snapshot.as_str())
        .detail("author", pending.author.as_str())
    }

    /// Builds the error of a request with invalid fields, and lists all of them. The code is `unknown_reference` if
    /// every field only refers to an object that does not exist.
    pub fn validation(problems: &Problems) -> Self {
        let message = match problems.list() {
            [one] if one.path.is_empty() => one.message.clone(),
            [one] => format!("{}: {}", one.path, one.message),
            many => format!("{} fields are not valid.", many.len()),
        };
        let code = if problems.all_are(gateway_model::problem::code::UNKNOWN_REFERENCE) {
            Code::UnknownReference
        } else {
            Code::ValidationFailed
        };
        Self::new(code, message).detail("fields", json!(problems.list()))
    }

    /// Returns the body of the error envelope.
    pub fn to_json(&self, request_id: &str) -> Value {
        let mut details = self.details.clone();
        details.insert("request_id".to_owned(), Value::from(request_id));
        json!({"error": {"code": self.code.as_str(), "message": self.message, "details": details}})
    }
}

impl From<SafeError<EditError>> for ApiError {
    fn from(error: SafeError<EditError>) -> Self {
        match error {
            SafeError::InProgress { pending, ticket: _ } => Self::apply_in_progress(&pending),
            SafeError::Commit(CommitError::Refused { error, ticket: _ }) => error.into(),
            SafeError::Commit(CommitError::Store(error)) => error.into(),
        }
    }
}

impl From<EditError> for ApiError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Invalid(problems) => Self::validation(&problems),
            EditError::NotFound { resource_type, id } => Self::not_found(resource_type, &id),
            EditError::Conflict { resource_type, field, existing_id, message } => {
                Self::new(Code::Conflict, sentence(&message))
                    .detail("resource_type", resource_type)
                    .detail("field", field)
                    .detail("existing_id", existing_id.to_string())
            }
            EditError::PolicyConflict { policies, reason } => {
                let ids: Vec<String> = policies.iter().map(ToString::to_string).collect();
                Self::new(Code::PolicyConflict, sentence(&reason))
                    .detail("policies", ids)
                    .detail("reason", reason)
            }
            EditError::InUse { resource_type, id, attempt, references } => {
                Self::new(Code::InUse, in_use(attempt, &references))
                    .detail("resource_type", resource_type)
                    .detail("id", id.to_string())
                    .detail("references", json!(references))
            }
            EditError::Protected { resource_type, id, message } => {
                Self::new(Code::InvalidState, sentence(&message))
                    .detail("resource_type", resource_type)
                    .detail("id", id.to_string())
                    .detail("state", "built_in")
                    .detail("allowed", Vec::<String>::new())
            }
            EditError::WrongState { resource_type, id, state, message } => {
                Self::new(Code::InvalidState, sentence(&message))
                    .detail("resource_type", resource_type)
                    .detail("id", id.to_string())
                    .detail("state", state)
                    .detail("allowed", Vec::<String>::new())
            }
            EditError::LimitReached { resource_type, limit } => {
                Self::new(Code::LimitReached, format!("The limit of {limit} objects is reached."))
                    .detail("resource_type", resource_type)
                    .detail("limit", limit)
            }
            EditError::LastAdmin { id, username } => Self::new(
                Code::LastAdmin,
                format!("{username} is the last administrator; create another one first."),
            )
            .detail("id", id.to_string())
            .detail("username", username),
            EditError::AlreadyConfigured { message } => {
                Self::new(Code::AlreadyConfigured, sentence(&message))
            }
            EditError::Stale { resource_type, expected: _, current } => {
                Self::precondition_failed(&format!("\"{current}\"")).detail("resource_type", resource_type)
            }
        }
    }
}

/// Returns why an object that others refer to stays as it is.
fn in_use(attempt: Attempt, references: &References) -> &'static str {
    if attempt == Attempt::Delete && references.firm == 0 {
        "Policies send traffic through it; with force=true it goes all the same, and they block or fall back as their \
         failure policy says."
    } else if references.only_applied {
        "The applied policies still refer to it; apply the stored ones first."
    } else if attempt == Attempt::Rename {
        "Other objects refer to it by its name, which it keeps as long as they do."
    } else {
        "Other objects refer to it."
    }
}

/// Turns a message into a sentence.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let mut text: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    text.push_str(letters.as_str());
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        if error.is_full() {
            tracing::error!(error = %with_causes(&error), "no room for the store");
            return Self::new(Code::StorageFull, "There is no room left on the disk of the store.");
        }
        match &error {
            store::Error::SecretsLocked => {
                let message =
                    "The passphrase of the secrets is lost: set it again before a secret can be stored.";
                Self::new(Code::InvalidState, message)
                    .detail("state", "secrets_locked")
                    .detail("allowed", vec!["POST /secrets/set-passphrase"])
            }
            _ => Self::internal(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_always_carry_the_request_id() {
        let body = ApiError::not_found("device", "x").to_json("r-1");
        assert_eq!(body["error"]["details"]["request_id"], "r-1");
        assert_eq!(body["error"]["details"]["resource_type"], "device");
        assert_eq!(body["error"]["code"], "not_found");
    }

    #[test]
    fn codes_are_unique_and_all_are_errors() {
        let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| code.status().as_u16() >= 400));
    }
}
