//! Types of DNS queries by name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{FormatError, text_serde};

/// Type of a query: `A`, `HTTPS`, `TYPE65280`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryType(String);

/// Types with a name, of the registry of IANA.
const QUERY_TYPES: &[&str] = &[
    "A",
    "NS",
    "CNAME",
    "SOA",
    "PTR",
    "HINFO",
    "MX",
    "TXT",
    "RP",
    "AFSDB",
    "SIG",
    "KEY",
    "AAAA",
    "LOC",
    "SRV",
    "NAPTR",
    "KX",
    "CERT",
    "DNAME",
    "OPT",
    "APL",
    "DS",
    "SSHFP",
    "IPSECKEY",
    "RRSIG",
    "NSEC",
    "DNSKEY",
    "DHCID",
    "NSEC3",
    "NSEC3PARAM",
    "TLSA",
    "SMIMEA",
    "HIP",
    "CDS",
    "CDNSKEY",
    "OPENPGPKEY",
    "CSYNC",
    "ZONEMD",
    "SVCB",
    "HTTPS",
    "SPF",
    "EUI48",
    "EUI64",
    "TKEY",
    "TSIG",
    "IXFR",
    "AXFR",
    "ANY",
    "URI",
    "CAA",
];

impl FromStr for QueryType {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<QueryType, FormatError> {
        let text = text.trim().to_ascii_uppercase();
        let number = text.strip_prefix("TYPE").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        if QUERY_TYPES.contains(&text.as_str()) {
            Ok(QueryType(text))
        } else if let Some(number) = number.and_then(|digits| digits.parse::<u16>().ok()) {
            Ok(QueryType(format!("TYPE{number}")))
        } else {
            Err(FormatError("a type of query such as A, AAAA, HTTPS or TYPE65280"))
        }
    }
}

impl fmt::Display for QueryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_serde!(QueryType, ({ "type": "string", "pattern": "^[A-Za-z0-9]{1,10}$", "description": "Type of query: A, AAAA, HTTPS, TYPE65280." }));
