//! NOTIFY messages (RFC 1996). A NOTIFY triggers an immediate check of the zone; the rest of the message is ignored.

use std::net::IpAddr;

use super::State;
use crate::wire::{HEADER, NameBuf, compose, flag, rcode, rtype, u16_at};

impl State {
    /// Writes the response: NOERROR if a secondary zone is checked, else NOTAUTH or FORMERR.
    pub fn notified(&self, message: &[u8], from: IpAddr, out: &mut Vec<u8>) {
        let (Some(id), Some(flags)) = (u16_at(message, 0), u16_at(message, 2)) else { return };
        let Some((zone, question)) = zone(message) else {
            return compose::header_only(out, id, flags, rcode::FORMERR);
        };
        let known = zone.as_ref().is_some_and(|zone| self.local_answers.notified(zone, from));
        if !known {
            return compose::header_only(out, id, flags, rcode::NOTAUTH);
        }
        compose::header_only(out, id, flags, rcode::NOERROR);
        out[2] |= (flag::AA >> 8) as u8;
        out[5] = 1;
        out.extend_from_slice(question);
    }
}

/// Returns the zone and the question section as received. None: the question section is malformed.
fn zone(message: &[u8]) -> Option<(NameBuf, &[u8])> {
    let (zone, end) = NameBuf::read(message, HEADER)?;
    let asked = (u16_at(message, 4)?, u16_at(message, end)?, u16_at(message, end + 2)?);
    // No name precedes it, so a compression pointer has no valid target.
    let fits = asked == (1, rtype::SOA, 1) && end - HEADER == zone.wire().len();
    fits.then_some((zone, &message[HEADER..end + 4]))
}
