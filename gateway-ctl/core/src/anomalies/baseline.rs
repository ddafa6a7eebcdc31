//! Baseline of a measure: median and median absolute deviation by hour of the week.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Hours of a week.
pub const HOURS: usize = 168;
/// Weeks whose values are kept for each hour.
const DEPTH: usize = 6;
/// Values below which an hour has no baseline of its own.
const MIN_SAMPLES: usize = 3;
/// Values below which the hours together are no baseline.
const MIN_SAMPLES_OF_ALL: usize = 24;
/// Steps of a value for each doubling: an error of less than 0.1 %.
const STEPS: f64 = 1000.0;

/// Hours that a baseline rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaselineBasis {
    /// The same hour of the same day of the week.
    HourOfWeek,
    /// The same hour of all days.
    HourOfDay,
    /// All hours.
    AllHours,
    /// A threshold that does not depend on the device.
    Fixed,
}

/// Usual value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// Median of the values.
    pub median: f64,
    /// Median of their absolute deviations from it.
    pub deviation: f64,
    /// Number of values.
    pub samples: u32,
    pub basis: BaselineBasis,
    /// Value from which on it is an anomaly.
    pub threshold: f64,
}

/// Values of the last weeks by hour of the week, on a logarithmic scale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples(Option<Box<[[u16; DEPTH]; HOURS]>>);

impl Samples {
    /// Adds the value of an hour. The oldest value of the hour leaves.
    pub fn push(&mut self, hour: usize, value: u64) {
        let hours = self.0.get_or_insert_with(|| Box::new([[0; DEPTH]; HOURS]));
        let values = &mut hours[hour % HOURS];
        values.rotate_right(1);
        values[0] = encode(value);
    }

    /// Returns the usual value of an hour, which is exceeded from `floor` above it on. `None` if too little is known.
    pub fn baseline(&self, hour: usize, floor: f64) -> Option<Baseline> {
        let hours = self.0.as_deref()?;
        let hour = hour % HOURS;
        let (mut values, basis) = [
            (collect(&hours[hour..=hour]), BaselineBasis::HourOfWeek, MIN_SAMPLES),
            (of_day(hours, hour), BaselineBasis::HourOfDay, MIN_SAMPLES),
            (collect(hours), BaselineBasis::AllHours, MIN_SAMPLES_OF_ALL),
        ]
        .into_iter()
        .find(|(values, _, least)| values.len() >= *least)
        .map(|(values, basis, _)| (values, basis))?;
        let samples = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let median = median(&mut values);
        let mut deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let deviation = self::median(&mut deviations);
        // 1.4826 makes the deviation that of a normal distribution; six of them are rare in any other.
        let threshold = median + floor.max(6.0 * 1.4826 * deviation).max(median / 2.0);
        Some(Baseline { median, deviation, samples, basis, threshold })
    }

    /// Returns the second largest value of all hours: the largest one may have been an anomaly itself.
    pub(super) fn second_largest(&self) -> f64 {
        let mut values = self.0.as_deref().map(|hours| collect(hours)).unwrap_or_default();
        values.sort_by(|a, b| b.total_cmp(a));
        values.get(1).copied().unwrap_or_default()
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |hours| size_of_val(&**hours))
    }
}

fn of_day(hours: &[[u16; DEPTH]; HOURS], hour: usize) -> Vec<f64> {
    hours
        .iter()
        .skip(hour % 24)
        .step_by(24)
        .flat_map(|values| collect(std::slice::from_ref(values)))
        .collect()
}

fn collect(hours: &[[u16; DEPTH]]) -> Vec<f64> {
    hours.iter().flatten().filter(|code| **code != 0).map(|code| decode(*code)).collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Returns the code of a value; 0 stands for none.
fn encode(value: u64) -> u16 {
    let code = (value as f64 + 1.0).log2() * STEPS;
    code.round().clamp(0.0, 64_000.0) as u16 + 1
}

fn decode(code: u16) -> f64 {
    (f64::from(code.saturating_sub(1)) / STEPS).exp2() - 1.0
}

impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let codes = self.0.iter().flat_map(|hours| hours.iter().flatten());
        let bytes: Vec<u8> = codes.flat_map(|code| code.to_le_bytes()).collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Samples, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
        if bytes.is_empty() {
            return Ok(Samples(None));
        }
        if bytes.len() != HOURS * DEPTH * 2 {
            return Err(serde::de::Error::invalid_length(bytes.len(), &"the values of a week"));
        }
        let mut hours = Box::new([[0; DEPTH]; HOURS]);
        for (code, bytes) in hours.iter_mut().flatten().zip(bytes.as_chunks::<2>().0) {
            *code = u16::from_le_bytes(*bytes);
        }
        Ok(Samples(Some(hours)))
    }
}
