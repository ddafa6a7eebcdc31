//! Who may do what: the class of capability a row needs, and the one place where a request is judged.
//!
//! Sign-in is not part of this version: the configuration refuses `auth.enabled: true`, and every caller is an
//! administrator. Rows carry their class all the same, and nothing but [`authorise`] looks at it.

use std::net::IpAddr;

use gateway_ctl::store::AuditAuth;
use gateway_model::Role;

use crate::error::{ApiError, Code};
use crate::table::Row;

/// Classes of capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Without any credential.
    Open,
    /// Configuration and status, secrets redacted.
    Read,
    /// Who asked for what, when: query log, captures, history of a client.
    Private,
    /// Dry runs that change nothing.
    Check,
    /// Captures, probes, flushes, test runs.
    Diagnose,
    /// The daily business of the gateway.
    Operate,
    /// Configuration export in plaintext.
    Export,
    /// Accounts, keys, listeners, secrets, wiping, going back in time.
    Administer,
}

impl Access {
    pub fn allows(self, role: Role) -> bool {
        match self {
            Access::Open | Access::Read | Access::Check => true,
            Access::Private | Access::Diagnose | Access::Export => role != Role::Viewer,
            Access::Operate => matches!(role, Role::Admin | Role::Operator),
            Access::Administer => role == Role::Admin,
        }
    }

    /// The least role that is enough.
    pub fn required_role(self) -> Role {
        match self {
            Access::Open | Access::Read | Access::Check => Role::Viewer,
            Access::Private | Access::Diagnose | Access::Export => Role::Diagnostics,
            Access::Operate => Role::Operator,
            Access::Administer => Role::Admin,
        }
    }
}

/// How a caller proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Sign-in is off.
    Open,
}

impl Proof {
    /// The `auth` of an audit entry.
    pub fn audit(self) -> AuditAuth {
        match self {
            Proof::Open => AuditAuth::Open,
        }
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Actor {
    pub name: String,
    pub role: Role,
    pub proof: Proof,
    /// None for the local socket.
    pub ip: Option<IpAddr>,
}

impl Actor {
    /// The caller while sign-in is off.
    pub fn open(ip: Option<IpAddr>) -> Self {
        Self { name: "admin".to_owned(), role: Role::Admin, proof: Proof::Open, ip }
    }
}

/// May this caller use this row?
pub fn authorise(actor: &Actor, row: &Row) -> Result<(), ApiError> {
    check(actor, row.access)
        .map_err(|denied| denied.detail("method", row.method.as_str()).detail("path", row.full_path()))
}

/// Has this caller that capability?
pub fn check(actor: &Actor, access: Access) -> Result<(), ApiError> {
    if access.allows(actor.role) {
        return Ok(());
    }
    let required = access.required_role();
    Err(ApiError::new(Code::Forbidden, format!("This needs the role {required}."))
        .detail("required_role", required.as_str())
        .detail("role", actor.role.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_judged_as_the_contract_says() {
        let allowed = |access: Access| {
            [Role::Admin, Role::Operator, Role::Viewer, Role::Diagnostics].map(|role| access.allows(role))
        };
        assert_eq!(allowed(Access::Read), [true, true, true, true]);
        assert_eq!(allowed(Access::Private), [true, true, false, true]);
        assert_eq!(allowed(Access::Check), [true, true, true, true]);
        assert_eq!(allowed(Access::Diagnose), [true, true, false, true]);
        assert_eq!(allowed(Access::Operate), [true, true, false, false]);
        assert_eq!(allowed(Access::Administer), [true, false, false, false]);
    }
}
