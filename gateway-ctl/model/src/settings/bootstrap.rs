//! The bootstrap configuration.
