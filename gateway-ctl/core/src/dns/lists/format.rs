//! The formats of lists.

use std::fmt;

use gateway_model::kinds::threat_feed::FeedFormat;

/// Format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Hosts,
    Domains,
    Adblock,
    Rpz,
    Ip,
}

impl From<FeedFormat> for Format {
    fn from(format: FeedFormat) -> Format {
        match format {
            FeedFormat::Hosts => Format::Hosts,
            FeedFormat::Domains => Format::Domains,
            FeedFormat::Adblock => Format::Adblock,
            FeedFormat::Rpz => Format::Rpz,
            FeedFormat::Ip => Format::Ip,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Hosts => "hosts",
            Format::Domains => "domains",
            Format::Adblock => "adblock",
            Format::Rpz => "rpz",
            Format::Ip => "ip",
        })
    }
}
