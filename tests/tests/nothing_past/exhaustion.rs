//! Exhaustion: memory, connections and tables stay within bounds for any client requests.

mod exports;
mod flows;
mod views;
