//! Inputs of all answers.

use std::sync::Arc;

use super::Settings;
use crate::hooks::{ClientLookup, FqdnPolicy, LocalAnswers};

/// Inputs of all answers; replaced as a whole.
#[derive(Clone)]
pub struct State {
    pub settings: Arc<Settings>,
    pub clients: Arc<dyn ClientLookup>,
    pub local_answers: Arc<dyn LocalAnswers>,
    pub fqdn_policy: Arc<dyn FqdnPolicy>,
}
