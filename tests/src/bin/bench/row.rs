//! Rows of the result and their statistics.

use anyhow::Result;
use serde_json::{Value, json};

use crate::titles::title;

/// One comparison.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub bench: &'static str,
    pub ours: f64,
    pub peer: f64,
    pub peer_name: String,
    pub unit: &'static str,
    pub target: Target,
}

/// Target of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The ratio must be at most this value.
    RatioAtMost(f64),
    /// The ratio must be at least this value.
    RatioAtLeast(f64),
    /// The gateway's result must be below this value.
    OursBelow(f64),
    /// The gateway's result and the ratio must be at least these values.
    BothAtLeast { ours: f64, ratio: f64 },
}

impl Row {
    /// Returns the gateway's result divided by the peer's.
    pub(crate) fn ratio(&self) -> f64 {
        self.ours / self.peer
    }

    fn is_met(&self) -> bool {
        match self.target {
            Target::RatioAtMost(most) => self.ratio() <= most,
            Target::RatioAtLeast(least) => self.ratio() >= least,
            Target::OursBelow(limit) => self.ours < limit,
            Target::BothAtLeast { ours, ratio } => self.ours >= ours && self.ratio() >= ratio,
        }
    }

    fn target(&self) -> String {
        match self.target {
            Target::RatioAtMost(most) => format!("ratio <= {most}"),
            Target::RatioAtLeast(least) => format!("ratio >= {least}"),
            Target::OursBelow(limit) => format!("ours < {limit} {}", self.unit),
            Target::BothAtLeast { ours, ratio } => format!("ours >= {ours} {}, ratio >= {ratio}", self.unit),
        }
    }

    fn json(&self) -> Value {
        json!({
            "bench": self.bench,
            "ours": rounded(self.ours),
            "peer": rounded(self.peer),
            "peer_name": self.peer_name,
            "unit": self.unit,
            "ratio": rounded(self.ratio()),
            "title": title(self.bench).unwrap_or(self.bench),
            "target": self.target(),
        })
    }
}

pub(crate) fn to_json(rows: &[Row]) -> String {
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    format!("{:#}\n", Value::from(rows))
}

pub(crate) fn print_table(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!("\n| bench | ours | peer | unit | ratio | target | met | peer is |");
    println!("|---|---|---|---|---|---|---|---|");
    for row in rows {
        println!(
            "| {} | {} | {} | {} | {:.2} | {} | {} | {} |",
            row.bench,
            rounded(row.ours),
            rounded(row.peer),
            row.unit,
            row.ratio(),
            row.target(),
            if row.is_met() { "yes" } else { "NO" },
            row.peer_name
        );
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (_, _) if sorted.is_empty() => f64::NAN,
        (middle, 1) => sorted[middle],
        (middle, _) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Measures all subjects in rotation. Returns the median of each and every result for the record.
pub(crate) fn alternate<S>(
    subjects: &mut [S],
    rounds: usize,
    mut measure: impl FnMut(&mut S) -> Result<f64>,
) -> Result<Vec<Measured>> {
    let mut all = vec![Vec::new(); subjects.len()];
    for round in 0..rounds {
        // The one that comes first finds the caches of the processor colder.
        let mut order: Vec<usize> = (0..subjects.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            all[index].push(measure(&mut subjects[index])?);
        }
    }
    Ok(all.into_iter().map(|values| Measured { median: median(&values), values }).collect())
}

#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub median: f64,
    pub values: Vec<f64>,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>10.3}  (", self.median)?;
        for (index, value) in self.values.iter().enumerate() {
            write!(f, "{}{value:.3}", if index == 0 { "" } else { ", " })?;
        }
        write!(f, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_target_is_met_on_its_own_side() {
        let row =
            |target| Row { bench: "x", ours: 2.0, peer: 4.0, peer_name: String::new(), unit: "s", target };
        assert!(row(Target::RatioAtMost(0.5)).is_met() && !row(Target::RatioAtMost(0.4)).is_met());
        assert!(row(Target::RatioAtLeast(0.5)).is_met() && !row(Target::RatioAtLeast(0.6)).is_met());
        assert!(row(Target::OursBelow(2.1)).is_met() && !row(Target::OursBelow(2.0)).is_met());
        let both = |ours, ratio| row(Target::BothAtLeast { ours, ratio }).is_met();
        assert!(both(2.0, 0.5) && !both(2.1, 0.5) && !both(2.0, 0.6));
    }
}
