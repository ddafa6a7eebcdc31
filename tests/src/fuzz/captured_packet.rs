//! Target: summaries of captured packets.

use gateway_dissect::{Dissector, LinkType, requested_server_name};

/// Maximum length of the text of a summary, in bytes.
const MAX_INFO_BYTES: usize = 512;

/// Summarises the bytes behind the first one as a packet of each link type, whole and cut off, twice in one capture. Checks
/// that the text is short and has no control characters.
pub fn captured_packet(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let cut = bytes.len().min(usize::from(*cut));
    if let Some(name) = requested_server_name(data) {
        assert!(!name.is_empty() && name.len() <= 253 && !name.bytes().any(|byte| byte.is_ascii_uppercase()));
    }
    let mut dissector = Dissector::default();
    for link in [LinkType::Ethernet, LinkType::Raw, LinkType::LinuxSll, LinkType::Ppp, LinkType::Null] {
        for packet in [bytes, &bytes[..cut], bytes] {
            let summary = dissector.summarize(link, packet);
            assert!(summary.info.len() <= MAX_INFO_BYTES, "{summary:?}");
            assert!(!summary.info.chars().any(char::is_control), "{summary:?}");
            assert!(summary.source.len() <= 45 && summary.destination.len() <= 45, "{summary:?}");
        }
    }
}
