//! Limits of the cache.

/// Limits of the cache. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory for all entries.
    pub bytes: usize,
    pub ttl_least: u32,
    pub ttl_most: u32,
    /// Maximum TTL of negative answers (RFC 2308, section 5).
    pub negative_most: u32,
    /// Time for which failures are cached (RFC 9520).
    pub failure: u32,
    /// Time for which an expired entry is kept as a stale answer, for use when no upstream answers (RFC 8767). 0: not
    /// at all.
    pub stale_keep: u32,
    /// TTL of stale answers.
    pub stale_ttl: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes: 32 << 20,
            ttl_least: 0,
            ttl_most: 86_400,
            negative_most: 3600,
            failure: 5,
            stale_keep: 259_200,
            stale_ttl: 30,
        }
    }
}
