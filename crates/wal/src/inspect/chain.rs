//! Which segments make up the log, as far as what is left tells.

use super::report::Fault;

/// A segment among others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) base: u64,
    /// Position after its last window.
    pub(super) window_end: u64,
    pub(super) previous_end: Option<u64>,
}

/// What a segment is to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// In the chain, up to this position if that is known.
    In(Option<u64>),
    PassedOver,
}

/// Follows the log back from the newest segment, which is the last. Faults that lie before `start`
/// are none: nothing there is needed. Names are those of the segments' files.
pub(super) fn walk(
    links: &[Link],
    names: &[String],
    start: u64,
    faults: &mut Vec<Fault>,
) -> Vec<Part> {
    let mut parts = vec![Part::In(None); links.len()];
    let Some((newest, older)) = links.split_last() else {
        return parts;
    };
    let mut before = newest.previous_end;
    let mut named_by = names.last();
    for ((link, part), name) in older.iter().zip(&mut parts).zip(names).rev() {
        match before {
            Some(end) if link.base >= end => {
                *part = Part::PassedOver;
                continue;
            }
            Some(end) if end <= link.window_end => *part = Part::In(Some(end)),
            Some(end) => {
                missing(end, start, named_by, faults);
                *part = Part::In(None);
            }
            None => *part = Part::In(None),
        }
        before = link.previous_end;
        named_by = Some(name);
    }
    if let Some(end) = before {
        missing(end, start, named_by, faults);
    }
    parts
}

fn missing(end: u64, start: u64, named_by: Option<&String>, faults: &mut Vec<Fault>) {
    if end > start {
        faults.push(Fault {
            file: named_by.cloned().unwrap_or_default(),
            offset: 0,
            bytes: 0,
            detail: format!("the segment before it, which ends at {end:#x}, is missing"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u64, previous_end: Option<u64>) -> Link {
        Link {
            base: index * 100,
            window_end: index * 100 + 100,
            previous_end,
        }
    }

    fn walked(links: &[Link], start: u64) -> (Vec<Part>, usize) {
        let names: Vec<String> = links.iter().map(|link| link.base.to_string()).collect();
        let mut faults = Vec::new();
        (walk(links, &names, start, &mut faults), faults.len())
    }

    #[test]
    fn each_segment_names_the_end_of_the_one_before() {
        let links = [link(1, Some(0)), link(2, Some(180)), link(4, Some(260))];
        let parts = vec![Part::In(Some(180)), Part::In(Some(260)), Part::In(None)];
        assert_eq!(walked(&links, 0), (parts, 0));
    }

    #[test]
    fn what_recovery_passed_over_is_told_from_what_is_missing() {
        let links = [link(1, Some(0)), link(2, Some(180)), link(3, Some(180))];
        let parts = vec![Part::In(Some(180)), Part::PassedOver, Part::In(None)];
        assert_eq!(walked(&links, 0), (parts, 0));
        let links = [link(1, Some(0)), link(3, Some(250))];
        assert_eq!(walked(&links, 0), (vec![Part::In(None); 2], 1));
        assert_eq!(walked(&links, 300), (vec![Part::In(None); 2], 0));
        assert_eq!(walked(&[], 0), (Vec::new(), 0));
    }

    #[test]
    fn a_lost_header_hides_the_end_of_the_segment_before_only() {
        let links = [
            link(1, Some(0)),
            link(2, Some(190)),
            link(3, None),
            link(4, Some(350)),
        ];
        let parts = vec![
            Part::In(Some(190)),
            Part::In(None),
            Part::In(Some(350)),
            Part::In(None),
        ];
        assert_eq!(walked(&links, 0), (parts, 0));
    }
}
