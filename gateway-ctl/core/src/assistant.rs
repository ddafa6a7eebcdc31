//! Pure part of the assistant: the protocols of servers of language models, its prompts, and the reading of what a model
//! answers.
//!
//! A model is untrusted: its answers are texts to show, never orders. Only what the deterministic check of a plan accepts
//! is shown as valid. Decision 0214 says why.

pub mod answer;
pub mod chat;
pub mod models;
pub mod policy_wish;
pub mod privacy;
pub mod prompt;
pub mod server_error;
pub mod verdict;

#[cfg(test)]
mod tests;
