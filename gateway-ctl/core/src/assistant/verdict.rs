//! Verdict of a model on a policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::server_error::ReplyFormError;

/// Maximum length of an explanation in the schema, in characters.
const MAX_WRITTEN: usize = 1000;
/// Maximum length of an explanation that is read, in characters.
const MAX_EXPLANATION: usize = 4000;

/// Assessment of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assessment {
    Fine,
    Questionable,
    Wrong,
}

/// Words of the model on a policy. They decide nothing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelVerdict {
    pub verdict: Assessment,
    /// Explanation by the model. It may be wrong.
    pub explanation: String,
    /// Confidence of the model in itself, from 0 to 1.
    pub confidence: f64,
}

#[derive(Deserialize)]
struct RawVerdict {
    verdict: Assessment,
    explanation: String,
    confidence: f64,
}

/// Returns the schema of a verdict.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["fine", "questionable", "wrong"]},
            "explanation": {"type": "string", "maxLength": MAX_WRITTEN},
            "confidence": {"type": "number"},
        },
        "required": ["verdict", "explanation", "confidence"],
    })
}

/// Reads the answer of a model.
pub fn read(text: &str) -> Result<ModelVerdict, ReplyFormError> {
    let RawVerdict { verdict, explanation, confidence } = serde_json::from_str(text.trim())?;
    let confidence = if confidence.is_finite() { confidence.clamp(0.0, 1.0) } else { 0.0 };
    Ok(ModelVerdict { verdict, explanation: explanation.chars().take(MAX_EXPLANATION).collect(), confidence })
}
