//! How wide and how long a Rust file may be.
//!
//! Owns the counting. A line of code is one that is neither blank nor only a comment. Test modules
//! inside a file (`#[cfg(test)]` before `mod x {`) are counted apart; files that hold nothing but
//! tests have the hard limit only.

use crate::Finding;
use crate::ratchet::{Kind, Limits, Ratchet};
use crate::tree::SourceFile;

/// Longest line, in characters; rustfmt breaks code here, but not strings and comments.
pub const WIDTH_MAX: usize = 100;
/// Lines of code up to which a file needs no entry, and with an entry.
pub const CODE_LIMITS: Limits = Limits {
    free_max: 400,
    hard_max: 800,
};
/// Lines of inline tests; beyond, they move to `tests.rs` in the folder of the module.
pub const INLINE_TESTS_LIMITS: Limits = Limits {
    free_max: 200,
    hard_max: 400,
};
/// Files of tests only.
pub const TEST_FILE_LIMITS: Limits = Limits {
    free_max: 800,
    hard_max: 800,
};
/// Lines over [`WIDTH_MAX`] in a file; tables such as test vectors may have an entry.
pub const WIDE_LIMITS: Limits = Limits {
    free_max: 0,
    hard_max: 200,
};

/// Lines of one file, by what they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Lines of code outside inline test modules.
    pub code: usize,
    /// Lines of code inside them.
    pub inline_tests: usize,
}

/// Every Rust file keeps the limits or stands in the ratchet, which names no file that is gone.
#[must_use]
pub fn sizes(files: &[SourceFile], ratchet: &Ratchet) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut paths = Vec::new();
    for file in files {
        let Some(text) = file.text_of(&[".rs"]) else {
            continue;
        };
        paths.push(file.path.as_str());
        let count = count(text);
        let limits = if is_test_file(&file.path) {
            TEST_FILE_LIMITS
        } else {
            CODE_LIMITS
        };
        findings.extend(ratchet.judge(Kind::Code, &file.path, count.code, limits));
        let inline = ratchet.judge(
            Kind::InlineTests,
            &file.path,
            count.inline_tests,
            INLINE_TESTS_LIMITS,
        );
        findings.extend(inline);
        findings.extend(width(file, text, ratchet));
    }
    findings.extend(ratchet.stale(&paths));
    findings
}

/// Names the first wide line too, so that the finding leads to a place.
fn width(file: &SourceFile, text: &str, ratchet: &Ratchet) -> Option<Finding> {
    let is_wide = |line: &str| line.chars().count() > WIDTH_MAX && !is_unbreakable(line);
    let wide = text.lines().filter(|line| is_wide(line)).count();
    let mut finding = ratchet.judge(Kind::Wide, &file.path, wide, WIDE_LIMITS)?;
    if finding.path == file.path {
        finding.line = text.lines().position(is_wide).map_or(0, |index| index + 1);
    }
    Some(finding)
}

/// An address, or a row of a table in a documentation comment.
fn is_unbreakable(line: &str) -> bool {
    let line = line.trim_start();
    let is_row = line.starts_with("//! |") || line.starts_with("/// |");
    line.contains("https://") || (is_row && line.ends_with('|'))
}

/// A file of tests only: below a `tests` folder, or named `tests.rs`, `*_tests.rs`.
#[must_use]
pub fn is_test_file(path: &str) -> bool {
    let in_folder = path.starts_with("tests/") || path.contains("/tests/");
    in_folder || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

/// Counts the lines of code of one file, formatted by rustfmt.
#[must_use]
pub fn count(text: &str) -> Count {
    let mut count = Count::default();
    let mut place = Place::Code;
    let mut in_comment = false;
    for line in text.lines() {
        place = place.on_line(line);
        if is_code(line, &mut in_comment) {
            match place {
                Place::Code | Place::AfterCfgTest => count.code += 1,
                Place::Tests | Place::TestsEnd => count.inline_tests += 1,
            }
        }
    }
    count
}

/// Where a line stands. Rustfmt puts items of a file, and the brace that ends them, at column 0.
#[derive(Clone, Copy)]
enum Place {
    Code,
    AfterCfgTest,
    Tests,
    TestsEnd,
}

impl Place {
    fn on_line(self, line: &str) -> Self {
        match self {
            Self::Code | Self::TestsEnd if line == "#[cfg(test)]" => Self::AfterCfgTest,
            Self::Code | Self::TestsEnd => Self::Code,
            Self::AfterCfgTest if opens_module(line) => Self::Tests,
            // Further attributes, also over several lines, and comments.
            Self::AfterCfgTest if line.starts_with(['#', ' ', ')', '/']) => Self::AfterCfgTest,
            Self::AfterCfgTest => Self::Code,
            Self::Tests if line == "}" => Self::TestsEnd,
            Self::Tests => Self::Tests,
        }
    }
}

fn opens_module(line: &str) -> bool {
    let item = line
        .strip_prefix("pub(crate) ")
        .or_else(|| line.strip_prefix("pub "))
        .unwrap_or(line);
    item.starts_with("mod ") && item.ends_with('{')
}

fn is_code(line: &str, in_comment: &mut bool) -> bool {
    let line = line.trim();
    if *in_comment {
        *in_comment = !line.contains("*/");
        return false;
    }
    if line.starts_with("/*") {
        *in_comment = !line.contains("*/");
        return false;
    }
    !line.is_empty() && !line.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_leaves_out_comments_and_sets_tests_apart() {
        let text = "//! head\n\nuse a;\n/* long\n fn no() {}\n*/\nfn f() {\n    // why\n    \
                    g();\n}\n\n\
                    #[cfg(test)]\n#[expect(\n    x,\n    reason = \"\"\n)]\n\
                    mod tests {\n    fn t() {}\n}\n\
                    fn after() {}\n";
        assert_eq!(
            count(text),
            Count {
                code: 10,
                inline_tests: 3
            }
        );
        let outside = "#[cfg(test)]\nmod tests;\nfn f() {}\n";
        assert_eq!(
            count(outside),
            Count {
                code: 3,
                inline_tests: 0
            }
        );
    }

    fn found(path: &str, text: &str, list: &str) -> Vec<Finding> {
        sizes(
            &[SourceFile::new(path, text)],
            &Ratchet::parse(list).unwrap(),
        )
    }

    #[test]
    fn a_long_file_is_found_and_a_test_file_may_be_longer() {
        let long = "f();\n".repeat(401);
        assert_eq!(found("src/a.rs", &long, "").len(), 1);
        assert_eq!(found("src/a.rs", &long, "code src/a.rs 401"), []);
        assert_eq!(found("src/a/tests.rs", &long, ""), []);
        assert_eq!(found("tests/a.rs", &"f();\n".repeat(801), "").len(), 1);
    }

    #[test]
    fn long_inline_tests_are_found() {
        let text = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    f();\n".repeat(199)
        );
        assert_eq!(found("src/a.rs", &text, "").len(), 1);
        assert_eq!(
            found("src/a.rs", &text.replacen("    f();\n", "", 1), ""),
            []
        );
    }

    #[test]
    fn a_wide_line_is_found_in_characters_not_bytes() {
        let wide = format!("\n// {}\n", "x".repeat(98));
        let findings = found("src/a.rs", &wide, "");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
        assert_eq!(found("src/a.rs", &wide, "wide src/a.rs 1"), []);
        assert_eq!(
            found("src/a.rs", &format!("//! | {} |\n", "x".repeat(98)), ""),
            []
        );
        assert_eq!(
            found("src/a.rs", &format!("// {}\n", "─".repeat(97)), ""),
            []
        );
    }

    #[test]
    fn an_entry_for_a_file_that_is_gone_is_found() {
        assert_eq!(found("src/a.rs", "", "code src/gone.rs 500").len(), 1);
    }
}
