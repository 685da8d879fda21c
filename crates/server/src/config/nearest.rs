//! The name that a mistyped one was probably meant to be.

/// The closest of `names` to `typed`, when it is close enough to be worth naming.
pub(super) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (distance(typed, name).min(without_table(typed, name)), name));
    let (edits, name) = scored.min_by_key(|(edits, _)| *edits)?;
    (edits <= 1 + typed.len() / 4).then_some(name)
}

/// A key written without its table counts as one edit away.
fn without_table(typed: &str, name: &str) -> usize {
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.len() == name.len() {
        return usize::MAX;
    }
    let typed_last = typed.rsplit('.').next().unwrap_or(typed);
    distance(typed_last, last).saturating_add(1)
}

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, byte_a) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (byte_b, cell) in b.bytes().zip(row.iter_mut().skip(1)) {
            let up = *cell;
            let swapped = diagonal + usize::from(byte_a != byte_b);
            left = swapped.min(up + 1).min(left + 1);
            diagonal = up;
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_close_one_and_not_the_far_one() {
        let names = ["data_dir", "limits.max_body", "limits.max_frame"];
        assert_eq!(nearest("data_dri", names.into_iter()), Some("data_dir"));
        assert_eq!(
            nearest("max_body", names.into_iter()),
            Some("limits.max_body")
        );
        assert_eq!(
            nearest("limit.max_frame", names.into_iter()),
            Some("limits.max_frame")
        );
        assert_eq!(nearest("completely_else", names.into_iter()), None);
    }

    #[test]
    fn counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
