//! Whether what a command shows is what the page shows, where IDs, times and spans may differ.

/// Compares, with `...` on the page for anything.
pub(super) fn matches(page: &str, shown: &str) -> bool {
    let (page, shown) = (plain(page), plain(shown));
    let parts: Vec<&str> = page.split("...").collect();
    let Some((first, parts)) = parts.split_first() else {
        return false;
    };
    let Some(mut rest) = shown.strip_prefix(first) else {
        return false;
    };
    let Some((last, parts)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(*part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// IDs, moments and spans of time by names, and one space where there are several.
fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        spans(&words).join(" ")
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.trim_end().to_owned()
}

fn word(word: &str) -> String {
    let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if is_shape(bare, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return word.replace(bare, "ID");
    }
    if is_shape(bare, "9999-99-99") {
        return word.replace(bare, "DAY");
    }
    if is_shape(bare, "99:99:99.999") {
        return word.replace(bare, "TIME");
    }
    word.to_owned()
}

/// `9` stands for a digit, `x` for a hexadecimal one.
fn is_shape(text: &str, shape: &str) -> bool {
    let fits = |(c, wanted): (char, char)| match wanted {
        '9' => c.is_ascii_digit(),
        'x' => c.is_ascii_hexdigit(),
        other => c == other,
    };
    text.len() == shape.len() && text.chars().zip(shape.chars()).all(fits)
}

/// `12.3 s` and `1 min 5 s` become one word.
fn spans(words: &[String]) -> Vec<String> {
    let mut plain: Vec<String> = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let is_number = word.parse::<f64>().is_ok();
        let unit = words.next_if(|next| {
            let bare = next.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            is_number && ["ms", "s", "min", "h"].contains(&bare)
        });
        let Some(unit) = unit else {
            plain.push(word.clone());
            continue;
        };
        let end = unit.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        if plain.last().is_some_and(|last| last == "SPAN") {
            plain.pop();
        }
        plain.push(format!("SPAN{end}"));
    }
    plain
}

#[test]
fn what_changes_from_run_to_run_does_not_matter() {
    let page = "01a22a53-c0dd-7000-80be-05007a535015  big  1\n\
                due in 1 min 5 s (at 2026-11-30 02:17:20.123 UTC): x\n...\nend, in 3.2 s.\n";
    let shown = "01a22a53-0000-7000-80be-05007a535019  big     1\n\
                 due in 49.0 s (at 2027-01-30 02:17:20.124 UTC): x\na\nb\nend, in 300 ms.\n";
    assert!(matches(page, shown));
    for (good, bad) in [("big  ", "bag"), ("x\n", "y\n"), ("end,", "ende")] {
        assert!(!matches(page, &shown.replace(good, bad)), "{bad}");
    }
    assert!(matches("", ""));
    assert!(!matches("", "x"));
    assert!(!matches("a 5", "a 6"));
}
