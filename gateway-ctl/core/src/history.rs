//! History of one day: values by minute, and the spans of a state. In memory only; pure.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// Number of minutes that are kept.
pub const MINUTES: usize = 1440;
/// Number of spans that are kept: a state that changes all the time takes no more memory.
const MAX_SPANS: usize = 1000;

/// Values by minute. A minute in which nothing was noted has no value.
#[derive(Clone, Debug, Default)]
pub struct MinuteRing<T>(VecDeque<(i64, T)>);

impl<T: Default> MinuteRing<T> {
    /// Returns the value of the present minute, which is new if nothing was noted in it. Forgets minutes that are too old,
    /// and later ones if the clock was set back.
    pub fn slot(&mut self, now: Timestamp) -> &mut T {
        let minute = minute_of(now);
        while self.0.back().is_some_and(|(last, _)| *last > minute) {
            self.0.pop_back();
        }
        if self.0.back().is_none_or(|(last, _)| *last < minute) {
            self.0.push_back((minute, T::default()));
        }
        let oldest = minute - MINUTES as i64;
        while self.0.front().is_some_and(|(first, _)| *first <= oldest) {
            self.0.pop_front();
        }
        let index = self.0.len() - 1;
        &mut self.0[index].1
    }

    /// Returns the values of the last minutes with the begin of each, oldest first.
    pub fn last(&self, now: Timestamp, minutes: usize) -> impl Iterator<Item = (Timestamp, &T)> {
        let oldest = minute_of(now) - i64::try_from(minutes).unwrap_or(i64::MAX);
        let begin = |minute: i64| Timestamp::from_second(minute * 60).unwrap_or_default();
        let kept = self.0.iter().filter(move |(minute, _)| *minute > oldest);
        kept.map(move |(minute, value)| (begin(*minute), value))
    }
}

fn minute_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(60)
}

/// Time in which a state was the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span<S> {
    pub from: Timestamp,
    /// End of the span; of the last one the time of the question.
    pub to: Timestamp,
    pub state: S,
}

/// Spans of a state.
#[derive(Clone, Debug)]
pub struct Spans<S>(VecDeque<(Timestamp, S)>);

impl<S> Default for Spans<S> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<S: PartialEq + Clone> Spans<S> {
    /// Notes the state since a time. A state that is the same as before adds nothing.
    pub fn note(&mut self, state: &S, since: Timestamp) {
        if self.0.back().is_some_and(|(_, last)| last == state) {
            return;
        }
        // Times of a clock that was set back since are later.
        while self.0.back().is_some_and(|(begin, _)| *begin > since) {
            self.0.pop_back();
        }
        if self.0.back().is_none_or(|(_, last)| last != state) {
            self.0.push_back((since, state.clone()));
        }
        while self.0.len() > MAX_SPANS {
            self.0.pop_front();
        }
    }

    /// Returns the spans of the last minutes, oldest first. The first one may have begun before.
    pub fn last(&mut self, now: Timestamp, minutes: usize) -> Vec<Span<S>> {
        let length = SignedDuration::from_mins(i64::try_from(minutes).unwrap_or(i64::MAX / 60));
        let begin = now.checked_sub(length).unwrap_or(Timestamp::MIN);
        self.forget(now);
        let ends = self.0.iter().skip(1).map(|(from, _)| *from).chain([now]);
        let spans = self.0.iter().zip(ends);
        let spans =
            spans.map(|((from, state), to)| Span { from: *from, to: to.max(*from), state: state.clone() });
        spans.filter(|span| span.to >= begin).collect()
    }

    /// Forgets the spans that ended more than a day ago.
    fn forget(&mut self, now: Timestamp) {
        let day = SignedDuration::from_mins(MINUTES as i64);
        let begin = now.checked_sub(day).unwrap_or(Timestamp::MIN);
        while self.0.get(1).is_some_and(|(next, _)| *next < begin) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    fn values(ring: &MinuteRing<u32>, now: i64, minutes: usize) -> Vec<(i64, u32)> {
        let second = |time: Timestamp| time.as_second() - 1_800_000_000;
        ring.last(at(now), minutes).map(|(begin, value)| (second(begin), *value)).collect()
    }

    #[test]
    fn a_ring_holds_one_value_a_minute_and_no_more_than_a_day() {
        let mut ring = MinuteRing::<u32>::default();
        *ring.slot(at(0)) += 1;
        *ring.slot(at(59)) += 1;
        *ring.slot(at(60)) += 5;
        *ring.slot(at(240)) += 7;
        assert_eq!(values(&ring, 240, MINUTES), [(0, 2), (60, 5), (240, 7)], "gaps have no value");
        assert_eq!(values(&ring, 299, 3), [(240, 7)]);
        for minute in 0..3000 {
            *ring.slot(at(minute * 60)) += 1;
        }
        assert_eq!(ring.0.len(), MINUTES);
        assert_eq!(values(&ring, 2999 * 60, MINUTES).len(), MINUTES);
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_no_future() {
        let mut ring = MinuteRing::<u32>::default();
        *ring.slot(at(600)) += 1;
        *ring.slot(at(60)) += 2;
        assert_eq!(values(&ring, 600, MINUTES), [(60, 2)]);
        let mut spans = Spans::default();
        spans.note(&"up", at(100));
        spans.note(&"down", at(600));
        spans.note(&"up", at(200));
        assert_eq!(spans.last(at(300), MINUTES), [Span { from: at(100), to: at(300), state: "up" }]);
    }

    #[test]
    fn spans_follow_each_other_without_gaps() {
        let mut spans = Spans::default();
        assert!(spans.last(at(0), MINUTES).is_empty());
        for (state, since) in [("up", 0), ("up", 5), ("down", 60), ("up", 90)] {
            spans.note(&state, at(since));
        }
        let span = |state, from, to| Span { from: at(from), to: at(to), state };
        let all = [span("up", 0, 60), span("down", 60, 90), span("up", 90, 600)];
        assert_eq!(spans.last(at(600), MINUTES), all);
        assert_eq!(spans.last(at(600), 1), all[2..], "only those that reach into the last minute");
        let day = 1440 * 60;
        assert_eq!(spans.last(at(day + 70), MINUTES).len(), 2);
        assert_eq!(spans.last(at(2 * day), MINUTES).len(), 1);
        for n in 0..5000 {
            spans.note(if n % 2 == 0 { &"down" } else { &"up" }, at(2 * day + n));
        }
        assert_eq!(spans.0.len(), MAX_SPANS);
    }
}
