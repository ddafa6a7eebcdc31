//! Failed checks of a list.

use std::net::IpAddr;

use gateway_outbound::http;

/// Failure of a check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the address is not an http or https URL")]
    Url,
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the server answered {0}")]
    Status(u16),
    #[error("redirect from https to http, which does not protect the list")]
    Downgrade,
    #[error("too many HTTP redirects")]
    Redirects,
    #[error("unsupported Content-Encoding {0} of the list")]
    Encoding(String),
    #[error("the list has more than 512 MiB")]
    TooLong,
    #[error("the list has more than {0} entries (dns.list_max_entries)")]
    TooManyEntries(u64),
    #[error("with it all lists together have more than {0} entries (dns.list_max_total_entries)")]
    TooManyInTotal(u64),
    #[error(
        "{0} is this host or a private address, from which no list is fetched (dns.list_private_targets)"
    )]
    PrivateTarget(IpAddr),
    #[error("nothing in the list is understood; line {0}: {1}")]
    Nothing(u64, String),
    #[error("the server sent a page, not a list; is there a captive portal or a sign-in before it?")]
    Page,
    #[error(
        "the list has {taken} entries instead of {before}; the previous one stays in use, and gives way if this lasts for \
         7 days"
    )]
    Shrunk { before: u64, taken: u64 },
    #[error("the list is empty")]
    Empty,
    #[error("cannot store the list: {0}")]
    Disk(String),
}

impl From<http::Error> for Error {
    fn from(error: http::Error) -> Error {
        match error {
            http::Error::Url => Error::Url,
            http::Error::PrivateTarget(address) => Error::PrivateTarget(address),
            http::Error::Timeout(_) => Error::Timeout,
            http::Error::Downgrade => Error::Downgrade,
            http::Error::Redirects => Error::Redirects,
            http::Error::TooLong(_) => Error::TooLong,
            error @ (http::Error::Dial(_) | http::Error::Tls(_) | http::Error::Http(_)) => {
                Error::Unreachable(error.to_string())
            }
        }
    }
}
