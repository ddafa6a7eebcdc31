//! Protocol numbers that this crate uses.

/// Bits of a header.
pub mod flag {
    pub const QR: u16 = 0x8000;
    pub const OPCODE: u16 = 0x7800;
    pub const AA: u16 = 0x0400;
    pub const TC: u16 = 0x0200;
    pub const RD: u16 = 0x0100;
    pub const RA: u16 = 0x0080;
    pub const AD: u16 = 0x0020;
    pub const CD: u16 = 0x0010;
}

pub mod rcode {
    pub const NOERROR: u16 = 0;
    pub const FORMERR: u16 = 1;
    pub const SERVFAIL: u16 = 2;
    pub const NXDOMAIN: u16 = 3;
    pub const NOTIMP: u16 = 4;
    pub const REFUSED: u16 = 5;
    pub const NOTAUTH: u16 = 9;
    pub const BADVERS: u16 = 16;

    pub const fn text(rcode: u16) -> &'static str {
        match rcode {
            NOERROR => "NOERROR",
            FORMERR => "FORMERR",
            SERVFAIL => "SERVFAIL",
            NXDOMAIN => "NXDOMAIN",
            NOTIMP => "NOTIMP",
            REFUSED => "REFUSED",
            6 => "YXDOMAIN",
            7 => "YXRRSET",
            8 => "NXRRSET",
            NOTAUTH => "NOTAUTH",
            10 => "NOTZONE",
            BADVERS => "BADVERS",
            _ => "RESERVED",
        }
    }
}

/// Extended errors (RFC 8914).
pub mod ede {
    pub const OTHER: u16 = 0;
    pub const STALE: u16 = 3;
    pub const BOGUS: u16 = 6;
    pub const CACHED_ERROR: u16 = 13;
    pub const NOT_READY: u16 = 14;
    pub const BLOCKED: u16 = 15;
    pub const FILTERED: u16 = 17;
    pub const PROHIBITED: u16 = 18;
    pub const STALE_NXDOMAIN: u16 = 19;
    pub const NOT_SUPPORTED: u16 = 21;
    pub const NO_REACHABLE_AUTHORITY: u16 = 22;
    pub const NETWORK_ERROR: u16 = 23;
    pub const INVALID_DATA: u16 = 24;

    pub const fn text(code: u16) -> &'static str {
        match code {
            OTHER => "Other Error",
            1 => "Unsupported DNSKEY Algorithm",
            2 => "Unsupported DS Digest Type",
            STALE => "Stale Answer",
            4 => "Forged Answer",
            5 => "DNSSEC Indeterminate",
            BOGUS => "DNSSEC Bogus",
            7 => "Signature Expired",
            8 => "Signature Not Yet Valid",
            9 => "DNSKEY Missing",
            10 => "RRSIGs Missing",
            11 => "No Zone Key Bit Set",
            12 => "NSEC Missing",
            CACHED_ERROR => "Cached Error",
            NOT_READY => "Not Ready",
            BLOCKED => "Blocked",
            16 => "Censored",
            FILTERED => "Filtered",
            PROHIBITED => "Prohibited",
            STALE_NXDOMAIN => "Stale NXDOMAIN Answer",
            20 => "Not Authoritative",
            NOT_SUPPORTED => "Not Supported",
            NO_REACHABLE_AUTHORITY => "No Reachable Authority",
            NETWORK_ERROR => "Network Error",
            INVALID_DATA => "Invalid Data",
            25 => "Signature Expired before Valid",
            26 => "Too Early",
            27 => "Unsupported NSEC3 Iterations Value",
            28 => "Unable to conform to policy",
            29 => "Synthesized",
            _ => "Unassigned",
        }
    }
}
