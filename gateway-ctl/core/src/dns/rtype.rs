//! Record type numbers (IANA registry "DNS Parameters").

use std::borrow::Cow;

use gateway_model::query_type::QueryType;
use gateway_model::record::RecordType;

pub const A: u16 = 1;
pub const NS: u16 = 2;
pub const CNAME: u16 = 5;
pub const SOA: u16 = 6;
pub const PTR: u16 = 12;
pub const HINFO: u16 = 13;
pub const MX: u16 = 15;
pub const TXT: u16 = 16;
pub const AAAA: u16 = 28;
pub const SRV: u16 = 33;
pub const DNAME: u16 = 39;
pub const OPT: u16 = 41;
pub const DS: u16 = 43;
pub const RRSIG: u16 = 46;
pub const NSEC: u16 = 47;
pub const DNSKEY: u16 = 48;
pub const NSEC3: u16 = 50;
pub const NSEC3PARAM: u16 = 51;
pub const SVCB: u16 = 64;
pub const HTTPS: u16 = 65;
pub const TSIG: u16 = 250;
pub const IXFR: u16 = 251;
pub const AXFR: u16 = 252;
pub const MAILB: u16 = 253;
pub const MAILA: u16 = 254;
pub const ANY: u16 = 255;
pub const CAA: u16 = 257;

/// Types with a mnemonic.
const NAMES: &[(&str, u16)] = &[
    ("A", A),
    ("NS", NS),
    ("CNAME", CNAME),
    ("SOA", SOA),
    ("PTR", PTR),
    ("HINFO", HINFO),
    ("MX", MX),
    ("TXT", TXT),
    ("RP", 17),
    ("AFSDB", 18),
    ("SIG", 24),
    ("KEY", 25),
    ("AAAA", AAAA),
    ("LOC", 29),
    ("SRV", SRV),
    ("NAPTR", 35),
    ("KX", 36),
    ("CERT", 37),
    ("DNAME", DNAME),
    ("OPT", OPT),
    ("APL", 42),
    ("DS", DS),
    ("SSHFP", 44),
    ("IPSECKEY", 45),
    ("RRSIG", RRSIG),
    ("NSEC", NSEC),
    ("DNSKEY", DNSKEY),
    ("DHCID", 49),
    ("NSEC3", NSEC3),
    ("NSEC3PARAM", NSEC3PARAM),
    ("TLSA", 52),
    ("SMIMEA", 53),
    ("HIP", 55),
    ("CDS", 59),
    ("CDNSKEY", 60),
    ("OPENPGPKEY", 61),
    ("CSYNC", 62),
    ("ZONEMD", 63),
    ("SVCB", SVCB),
    ("HTTPS", HTTPS),
    ("SPF", 99),
    ("EUI48", 108),
    ("EUI64", 109),
    ("TKEY", 249),
    ("TSIG", TSIG),
    ("IXFR", IXFR),
    ("AXFR", AXFR),
    ("ANY", ANY),
    ("URI", 256),
    ("CAA", CAA),
];

/// Returns the number of the type in a rule.
pub fn of_query(query: &QueryType) -> Option<u16> {
    parse(&query.to_string())
}

pub const fn of_record(record: RecordType) -> u16 {
    match record {
        RecordType::A => A,
        RecordType::Aaaa => AAAA,
        RecordType::Cname => CNAME,
        RecordType::Mx => MX,
        RecordType::Txt => TXT,
        RecordType::Srv => SRV,
        RecordType::Ptr => PTR,
        RecordType::Ns => NS,
        RecordType::Caa => CAA,
        RecordType::Https => HTTPS,
        RecordType::Svcb => SVCB,
        RecordType::Ds => DS,
    }
}

/// Returns the mnemonic, such as `A`; without one, the form of RFC 3597, such as `TYPE65280`.
pub fn text(rtype: u16) -> Cow<'static, str> {
    match NAMES.iter().find(|(_, number)| *number == rtype) {
        Some((name, _)) => (*name).into(),
        None => format!("TYPE{rtype}").into(),
    }
}

/// Returns the number for a mnemonic or for the form of RFC 3597.
pub fn parse(text: &str) -> Option<u16> {
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, number)| *number);
    named.or_else(|| text.to_ascii_uppercase().strip_prefix("TYPE")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_a_rule_can_name_has_a_number() {
        for (name, number) in NAMES {
            let query: QueryType = name.parse().expect("the model knows it");
            assert_eq!(of_query(&query), Some(*number));
            assert_eq!(text(*number), *name);
        }
        let query: QueryType = "type65280".parse().expect("a type");
        assert_eq!((of_query(&query), text(65280)), (Some(65280), "TYPE65280".into()));
        for record in RecordType::ALL {
            assert_eq!(text(of_record(*record)), record.to_string());
        }
    }
}
