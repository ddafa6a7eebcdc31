//! Lists of domains to search, as router advertisements (RFC 8106, section 5.2) and DHCPv6 (RFC 3646, section 4) carry
//! them: names in the wire form of DNS, without compression.

/// Longest label and longest name (RFC 1035, section 3.1).
const MAX_LABEL: usize = 63;
const MAX_NAME: usize = 255;

/// Appends a domain. Returns false, and appends nothing, if it is no domain.
pub(crate) fn push(bytes: &mut Vec<u8>, domain: &str) -> bool {
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let is_label = |label: &str| !label.is_empty() && label.len() <= MAX_LABEL && label.is_ascii();
    if domain.len() + 2 > MAX_NAME || !domain.split('.').all(is_label) {
        return false;
    }
    for label in domain.split('.') {
        bytes.push(u8::try_from(label.len()).expect("at most 63"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    true
}

/// Reads domains up to the end, or up to padding of zeroes. `None` if a name is cut off, compressed, too long, or has
/// other characters than letters, digits, hyphens and underscores.
pub(crate) fn parse(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut domains = Vec::new();
    while bytes.iter().any(|byte| *byte != 0) {
        let mut domain = String::new();
        loop {
            let (length, rest) = bytes.split_first()?;
            let length = usize::from(*length);
            if length == 0 {
                bytes = rest;
                break;
            }
            let label = rest.get(..length).filter(|label| label.len() <= MAX_LABEL)?;
            if !label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
                return None;
            }
            if !domain.is_empty() {
                domain.push('.');
            }
            domain.extend(label.iter().map(|byte| char::from(*byte)));
            bytes = &rest[length..];
        }
        if domain.is_empty() || domain.len() + 2 > MAX_NAME {
            return None;
        }
        domains.push(domain);
    }
    Some(domains)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_domains_are_not_written() {
        let mut bytes = Vec::new();
        for domain in ["", ".", "a..b", &"a".repeat(64), &"a.".repeat(130), "ü"] {
            assert!(!push(&mut bytes, domain), "{domain}");
        }
        assert!(bytes.is_empty());
    }

    #[test]
    fn damaged_lists_are_refused() {
        assert_eq!(parse(&[3, b'l', b'a', b'n', 0, 0, 0, 0]), Some(vec!["lan".to_owned()]), "padding");
        for damaged in
            [&[3, b'l', b'a'][..], &[0xc0, 0], &[3, b'l', b'a', b'n'], &[1, b' ', 0], &[0, 1, b'a', 0]]
        {
            assert_eq!(parse(damaged), None, "{damaged:?}");
        }
    }

    proptest! {
        #[test]
        fn written_lists_are_read_again(domains in prop::collection::vec("[a-z0-9-]{1,12}(\\.[a-z]{1,9}){0,4}", 0..6)) {
            let mut bytes = Vec::new();
            prop_assert!(domains.iter().all(|domain| push(&mut bytes, domain)));
            prop_assert_eq!(parse(&bytes), Some(domains));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for domain in parse(&bytes).unwrap_or_default() {
                prop_assert!(push(&mut Vec::new(), &domain), "{}", domain);
            }
        }
    }
}
