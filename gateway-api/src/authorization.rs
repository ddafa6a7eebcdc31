//! Authorization: the access class of an endpoint, and the check of a caller against it.
//!
//! [`crate::auth`] has authenticated the caller before.

use std::net::IpAddr;

use gateway_ctl::store::AuditAuth;
use gateway_model::{Id, Role};
use uuid::Uuid;

use crate::error::{ApiError, Code};

/// Access classes of endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No credential needed.
    Open,
    /// Password and sessions of the caller.
    Own,
    /// Configuration and status, with secrets redacted.
    Read,
    /// Query log, captures, history of a client. Excluded from the read access of the local network.
    Private,
    /// Audit trail. Excluded from the read access of the local network.
    Trail,
    /// Dry runs that change nothing.
    Check,
    /// Captures, probes, flushes, test runs.
    Diagnose,
    /// Day-to-day operation of the gateway.
    Operate,
    /// Configuration export in plaintext.
    Export,
    /// Accounts, keys, listeners, secrets, wiping, rollback.
    Administer,
    /// Secrets in plaintext. Excluded from the read access of the local network.
    Reveal,
}

impl Access {
    /// All access classes.
    #[cfg(test)]
    const ALL: &[Access] = &[
        Access::Open,
        Access::Own,
        Access::Read,
        Access::Private,
        Access::Trail,
        Access::Check,
        Access::Diagnose,
        Access::Operate,
        Access::Export,
        Access::Administer,
        Access::Reveal,
    ];

    pub fn allows(self, role: Role) -> bool {
        match self {
            Access::Open | Access::Own | Access::Read | Access::Trail | Access::Check => true,
            Access::Private | Access::Diagnose | Access::Export => role != Role::Viewer,
            Access::Operate => matches!(role, Role::Admin | Role::Operator),
            Access::Administer | Access::Reveal => role == Role::Admin,
        }
    }

    /// Returns the lowest user role that has this access.
    pub fn required_role(self) -> Role {
        match self {
            Access::Open | Access::Own | Access::Read | Access::Trail | Access::Check => Role::Viewer,
            Access::Private | Access::Diagnose | Access::Export | Access::Operate => Role::Operator,
            Access::Administer | Access::Reveal => Role::Admin,
        }
    }

    /// Reports whether an address in the local network is not enough: the caller must present a session or an API key.
    /// Without one, nothing is readable that a signed-in viewer may not read.
    pub fn needs_credential(self) -> bool {
        self == Access::Trail || !self.allows(Role::Viewer)
    }
}

/// Proof of a caller's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// None.
    None,
    /// None needed: sign-in is off.
    Open,
    /// Address in the local network.
    Localnet,
    /// Local socket.
    System,
    Session(Uuid),
    Key(Id),
    /// Key of the configuration, by its index there.
    ConfiguredKey(usize),
}

impl Proof {
    /// Returns the `auth` field of an audit entry.
    pub fn audit(self) -> AuditAuth {
        match self {
            Proof::None | Proof::Open => AuditAuth::Open,
            Proof::Localnet => AuditAuth::Localnet,
            Proof::System => AuditAuth::System,
            Proof::Session(_) => AuditAuth::Session,
            Proof::Key(_) | Proof::ConfiguredKey(_) => AuditAuth::Key,
        }
    }

    /// Reports whether the proof is one that a page of another site cannot make a browser send.
    pub fn is_credential(self) -> bool {
        match self {
            Proof::None | Proof::Open | Proof::Localnet => false,
            Proof::System | Proof::Session(_) | Proof::Key(_) | Proof::ConfiguredKey(_) => true,
        }
    }
}

/// The caller.
#[derive(Clone, Debug)]
pub struct Actor {
    pub name: String,
    pub role: Role,
    pub proof: Proof,
    /// Address of the caller. `None` for the local socket.
    pub ip: Option<IpAddr>,
    /// Managed user, if the caller is one.
    pub user: Option<Id>,
}

/// Checks that the caller has the access class.
pub(crate) fn check(actor: &Actor, access: Access) -> Result<(), ApiError> {
    let unproven = match actor.proof {
        Proof::None => access != Access::Open,
        Proof::Localnet => access.needs_credential(),
        _ => false,
    };
    if unproven {
        return Err(ApiError::new(
            Code::Unauthenticated,
            "Authentication required: sign in, or send Authorization: Bearer <key>.",
        ));
    }
    if access.allows(actor.role) {
        return Ok(());
    }
    let required = access.required_role();
    Err(ApiError::new(Code::Forbidden, format!("This operation requires the role {required}."))
        .detail("required_role", required.as_str())
        .detail("role", actor.role.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_evaluated_as_the_contract_says() {
        let allowed = |access: Access| {
            [Role::Admin, Role::Operator, Role::Viewer, Role::Diagnostics].map(|role| access.allows(role))
        };
        assert_eq!(allowed(Access::Own), [true, true, true, true]);
        assert_eq!(allowed(Access::Read), [true, true, true, true]);
        assert_eq!(allowed(Access::Private), [true, true, false, true]);
        assert_eq!(allowed(Access::Check), [true, true, true, true]);
        assert_eq!(allowed(Access::Diagnose), [true, true, false, true]);
        assert_eq!(allowed(Access::Export), [true, true, false, true]);
        assert_eq!(allowed(Access::Operate), [true, true, false, false]);
        assert_eq!(allowed(Access::Administer), [true, false, false, false]);
        assert_eq!(allowed(Access::Trail), [true, true, true, true]);
        assert_eq!(allowed(Access::Reveal), [true, false, false, false]);
    }

    #[test]
    fn without_a_proof_no_role_counts() {
        let anonymous =
            Actor { name: "anonymous".into(), role: Role::Admin, proof: Proof::None, ip: None, user: None };
        assert_eq!(check(&anonymous, Access::Read).expect_err("refused").code, Code::Unauthenticated);
        assert!(check(&anonymous, Access::Open).is_ok());
    }

    #[test]
    fn local_network_reads_no_more_than_a_viewer() {
        let actor = Actor {
            name: "localnet".into(),
            role: Role::Admin,
            proof: Proof::Localnet,
            ip: None,
            user: None,
        };
        for access in Access::ALL {
            if *access == Access::Trail || !access.allows(Role::Viewer) {
                let error = check(&actor, *access).expect_err("refused");
                assert_eq!(error.code, Code::Unauthenticated, "{access:?}");
            }
        }
        assert!(check(&actor, Access::Read).is_ok());
    }
}
