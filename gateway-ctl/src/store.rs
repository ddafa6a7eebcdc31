//! The durable state: one write path, one audit trail.
