//! Exhaustion: memory, connections and tables stay within bounds, whatever clients ask for.

mod flows;
mod views;
