//! Conditions and events that producers report, and when a rule makes an alert of them.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::behaviour::{Behaviour, Measure};
use super::rules::ActiveRule;
use super::subject::Subject;
use super::timing::Now;

/// Maximum number of reports that are counted in a window. A larger threshold is not reached.
const MAX_COUNTED: usize = 1024;

/// Report of a producer.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub subject: Subject,
    /// Human-readable reason.
    pub message: String,
    /// Measured value, in the unit of the rule's threshold.
    pub value: Option<f64>,
    /// Number of times that an event happened.
    pub times: u64,
    /// Time at which the condition ends if nothing more is observed.
    pub until: Option<Timestamp>,
}

/// Condition that holds, or events that happened.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub report: Report,
    /// Time since which the value is beyond the threshold; the begin of the window.
    beyond_since: Option<SignedDuration>,
    /// Times of the last reports.
    reports: VecDeque<SignedDuration>,
    in_a_row: u32,
    /// A person has resolved the alert while the condition held.
    pub is_dismissed: bool,
}

impl Condition {
    pub(super) fn new(report: Report, is_dismissed: bool) -> Condition {
        Condition { report, beyond_since: None, reports: VecDeque::new(), in_a_row: 0, is_dismissed }
    }

    /// Takes another report.
    pub(super) fn take(&mut self, report: Report, now: Now) {
        let times = usize::try_from(report.times).unwrap_or(usize::MAX).min(MAX_COUNTED);
        self.report = report;
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.reports.extend(std::iter::repeat_n(now.boot, times));
        let excess = self.reports.len().saturating_sub(MAX_COUNTED);
        self.reports.drain(..excess);
    }

    /// Reports whether the condition is beyond the rule's threshold now, whatever the window.
    pub(super) fn is_beyond(&self, behaviour: Behaviour, rule: &ActiveRule) -> bool {
        match (behaviour.measure, self.report.value) {
            (Measure::AtLeast | Measure::Count, Some(value)) => value >= rule.threshold,
            (Measure::AtMost, Some(value)) => value <= rule.threshold,
            _ => true,
        }
    }

    /// Reports whether the rule makes an alert of the condition now.
    pub(super) fn is_met(&mut self, behaviour: Behaviour, rule: &ActiveRule, now: Now) -> bool {
        if !self.is_beyond(behaviour, rule) {
            self.beyond_since = None;
            return false;
        }
        let since = *self.beyond_since.get_or_insert(now.boot);
        match behaviour.measure {
            Measure::Lasting | Measure::AtLeast | Measure::AtMost => now.has_passed(since, rule.window),
            Measure::Count => true,
            Measure::InARow => f64::from(self.in_a_row) >= rule.threshold,
            Measure::Rate => {
                if !rule.window.is_zero() {
                    self.reports.retain(|at| !now.has_passed(*at, rule.window));
                }
                self.reports.len() as f64 >= rule.threshold
            }
        }
    }

    /// Reports whether the window of the rule has begun.
    pub(super) fn is_in_window(&self) -> bool {
        self.beyond_since.is_some() && !self.is_dismissed
    }

    /// Reports whether a report came within a window.
    pub(super) fn has_reports_within(&self, window: SignedDuration, now: Now) -> bool {
        self.reports.back().is_some_and(|last| !now.has_passed(*last, window))
    }
}
