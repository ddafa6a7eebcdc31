//! placeholder

pub mod matching;
