//! Flow records in the formats of collectors: IPFIX, syslog, and OpenTelemetry.
//!
//! Each function returns bytes; services send them. What a record does not have is left out, never sent as zero.

pub mod ipfix;
mod json;
pub mod otlp;
pub mod syslog;

#[cfg(test)]
mod tests;
