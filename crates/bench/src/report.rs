//! Results: collecting them, medians over runs, the table and the JSON file.

use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// One number of one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Metric {
    /// Column of the table and key of the JSON file; its unit ends the name.
    pub(crate) name: &'static str,
    /// The number.
    pub(crate) value: f64,
}

/// What one case gave in one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaseResult {
    /// The case, unique in its workload.
    pub(crate) case: String,
    /// Its numbers, in the order of the columns.
    pub(crate) metrics: Vec<Metric>,
    /// What a reader must know about them.
    pub(crate) notes: Vec<String>,
}

impl CaseResult {
    /// Without numbers yet.
    pub(crate) fn new(case: impl Into<String>) -> Self {
        Self {
            case: case.into(),
            metrics: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a number.
    pub(crate) fn push(&mut self, name: &'static str, value: f64) {
        self.metrics.push(Metric { name, value });
    }

    /// Adds a number if there is one.
    pub(crate) fn push_some(&mut self, name: &'static str, value: Option<f64>) {
        self.metrics
            .extend(value.map(|value| Metric { name, value }));
    }

    /// The number of this name.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        let metric = self.metrics.iter().find(|metric| metric.name == name)?;
        Some(metric.value)
    }

    /// Adds a remark.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

/// One case of all runs.
#[derive(Debug)]
struct Row {
    case: String,
    /// Values of each run, by name, in the order in which the names came.
    columns: Vec<(&'static str, Vec<f64>)>,
    notes: Vec<String>,
}

/// All results of the program.
#[derive(Debug, Default)]
pub(crate) struct Report {
    workloads: Vec<(&'static str, Vec<Row>)>,
}

impl Report {
    /// Adds the results of one run of a workload.
    pub(crate) fn add(&mut self, workload: &'static str, results: Vec<CaseResult>) {
        let place = self
            .workloads
            .iter()
            .position(|(name, _)| *name == workload);
        if place.is_none() {
            self.workloads.push((workload, Vec::new()));
        }
        let found = self
            .workloads
            .iter_mut()
            .find(|(name, _)| *name == workload);
        let Some((_, rows)) = found else { return };
        for result in results {
            match rows.iter_mut().find(|row| row.case == result.case) {
                Some(row) => row.add(result),
                None => rows.push(Row::new(result)),
            }
        }
    }

    /// The tables, one per workload, medians over the runs.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for (workload, rows) in &self.workloads {
            text.push_str(&format!("\n## {workload}\n\n"));
            text.push_str(&table_of(rows));
        }
        text
    }

    /// All values and medians.
    pub(crate) fn json(&self, runs: u32) -> Value {
        let workloads: BTreeMap<&str, Value> = self
            .workloads
            .iter()
            .map(|(name, rows)| {
                let rows = rows.iter().map(|row| (row.case.clone(), row.json()));
                (*name, Value::Object(rows.collect()))
            })
            .collect();
        json!({
            "tanda_bench": env!("CARGO_PKG_VERSION"),
            "finished_unix_s": unix_seconds(),
            "machine": machine(),
            "runs": runs,
            "workloads": workloads,
        })
    }
}

impl Row {
    fn new(result: CaseResult) -> Self {
        let columns = result.metrics.iter();
        Self {
            case: result.case,
            columns: columns.map(|m| (m.name, vec![m.value])).collect(),
            notes: result.notes,
        }
    }

    fn add(&mut self, result: CaseResult) {
        for metric in result.metrics {
            let column = self
                .columns
                .iter_mut()
                .find(|(name, _)| *name == metric.name);
            match column {
                Some((_, values)) => values.push(metric.value),
                None => self.columns.push((metric.name, vec![metric.value])),
            }
        }
        for note in result.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    fn median(&self, name: &str) -> Option<f64> {
        let (_, values) = self.columns.iter().find(|(column, _)| *column == name)?;
        median(values)
    }

    fn json(&self) -> Value {
        let columns = self.columns.iter().map(|(name, values)| {
            let value = json!({ "median": median(values), "runs": values });
            ((*name).to_owned(), value)
        });
        json!({ "metrics": Value::Object(columns.collect()), "notes": self.notes })
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len().is_multiple_of(2) {
        let lower = *sorted.get(middle.checked_sub(1)?)?;
        return Some(f64::midpoint(lower, upper));
    }
    Some(upper)
}

/// A Markdown table; it also reads well as plain text.
fn table_of(rows: &[Row]) -> String {
    let mut names: Vec<&'static str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.columns) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut cells: Vec<Vec<String>> = vec![vec!["case".to_owned()]];
    if let Some(head) = cells.first_mut() {
        head.extend(names.iter().map(|name| (*name).to_owned()));
    }
    for row in rows {
        let values = names.iter().map(|name| row.median(name));
        let values = values.map(|value| value.map_or_else(|| "-".to_owned(), number));
        cells.push(std::iter::once(row.case.clone()).chain(values).collect());
    }
    let mut text = aligned(&cells);
    for row in rows {
        for note in &row.notes {
            text.push_str(&format!("  {}: {note}\n", row.case));
        }
    }
    text
}

fn aligned(cells: &[Vec<String>]) -> String {
    let columns = cells.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let lengths = cells.iter().filter_map(|row| row.get(column));
        lengths.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (index, row) in cells.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            text.push_str(&match column {
                0 => format!("| {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
        }
        text.push('\n');
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(width + 1);
                text.push_str(if column == 0 { "|" } else { "" });
                let end = if column == 0 { "-|" } else { ":|" };
                text.push_str(&dashes);
                text.push_str(end);
            }
            text.push('\n');
        }
    }
    text
}

/// Three significant digits or so, thousands apart.
fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len() - place;
        if place > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// What the figures were measured on.
fn machine() -> Value {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": ")).map(|(_, m)| m);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "cpu": model,
        "kernel": kernel.trim(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(case: &str, value: f64) -> CaseResult {
        let mut result = CaseResult::new(case);
        result.push("messages_per_s", value);
        result
    }

    #[test]
    fn medians_over_runs() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.1234), "0.12");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(1_234_567.0), "1 234 567");
    }

    #[test]
    fn runs_of_one_case_meet_in_one_row() {
        let mut report = Report::default();
        for value in [10.0, 30.0, 20.0] {
            report.add("enqueue", vec![result("a", value)]);
        }
        report.add("enqueue", vec![result("longer", 1.0)]);
        assert_eq!(
            report.table(),
            "\n## enqueue\n\n\
             | case   | messages_per_s |\n\
             |--------|---------------:|\n\
             | a      |           20.0 |\n\
             | longer |           1.00 |\n"
        );
        let json = report.json(3);
        let metric = &json["workloads"]["enqueue"]["a"]["metrics"]["messages_per_s"];
        assert_eq!(metric["median"], 20.0);
        assert_eq!(metric["runs"], json!([10.0, 30.0, 20.0]));
    }
}
