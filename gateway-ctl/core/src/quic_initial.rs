//! Initial packets of QUIC (RFC 9000, section 17.2.2): the place of what is encrypted, and the ClientHello in decrypted
//! frames. Decryption takes place elsewhere.

mod frame;
mod frames;
mod header;

pub use frame::frame;
pub use frames::{Handshake, Name};
pub use header::{Header, Version, header};
