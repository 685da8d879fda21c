//! Publisher confirms: which numbers were given, and how the answers are said.
//!
//! What is rejected is said at once. What is taken is said by the highest number below which
//! everything has its answer, so a rejection never comes after a confirm that covers it.

use std::collections::VecDeque;

use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::publish::Confirm;

use super::outbound::{Outbound, clip};

/// Publishes whose numbers follow each other and which are answered together.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    last: u64,
    is_answered: bool,
    /// The highest number in it that was taken; 0 = none.
    taken: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Confirms {
    /// The last number given.
    given: u64,
    /// Runs in order, from the first that is not answered on.
    runs: VecDeque<Run>,
    /// The highest number below which all is answered and which was taken.
    taken: u64,
    /// The last number that was said to be taken.
    said: u64,
}

/// Why a publish is rejected.
#[derive(Debug)]
pub(super) struct Rejection<'a> {
    pub(super) code: ReplyCode,
    pub(super) text: &'a str,
}

impl Confirms {
    /// The number that the next publish must have.
    pub(super) const fn next(&self) -> u64 {
        self.given.saturating_add(1)
    }

    /// Counts the next publish. Those of one run, `run` being its first, follow each other.
    /// Returns the first of its run.
    pub(super) fn give(&mut self, run: Option<u64>) -> u64 {
        self.given = self.next();
        match (run, self.runs.back_mut()) {
            (Some(first), Some(last)) if last.first == first && !last.is_answered => {
                last.last = self.given;
                first
            }
            _ => {
                self.runs.push_back(Run {
                    first: self.given,
                    last: self.given,
                    is_answered: false,
                    taken: 0,
                });
                self.given
            }
        }
    }

    /// The run that begins with `first` was answered; `outcomes` says of each publish whether it
    /// was taken, or why not. Says rejections; see [`Confirms::say`] for the others.
    pub(super) fn answer<'a>(
        &mut self,
        first: u64,
        outcomes: impl Iterator<Item = Result<(), Rejection<'a>>>,
        outbound: &mut Outbound,
    ) {
        let Ok(at) = self.runs.binary_search_by_key(&first, |run| run.first) else {
            return;
        };
        let Some(run) = self.runs.get_mut(at).filter(|run| !run.is_answered) else {
            return;
        };
        run.is_answered = true;
        for (seq, outcome) in (run.first..=run.last).zip(outcomes) {
            match outcome {
                Ok(()) => run.taken = seq,
                Err(Rejection { code, text }) => {
                    outbound.frame(&Confirm::rejected(seq, code, clip(text)));
                }
            }
        }
        while let Some(run) = self.runs.front().filter(|run| run.is_answered) {
            self.taken = self.taken.max(run.taken);
            self.runs.pop_front();
        }
    }

    /// Says what was taken since it was said last.
    pub(super) fn say(&mut self, outbound: &mut Outbound) {
        if self.taken > self.said {
            self.said = self.taken;
            outbound.frame(&Confirm::upto(self.said));
        }
    }

    /// Bytes it takes to remember what is not answered.
    pub(super) fn held_bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>()
    }

    /// Panics when runs contradict each other.
    pub(super) fn assert_invariants(&self) {
        let mut next = None;
        for run in &self.runs {
            assert!(run.first <= run.last, "{run:?}");
            assert!(next.is_none_or(|next| next == run.first), "{run:?}");
            next = run.last.checked_add(1);
        }
        let end = next.unwrap_or_else(|| self.next());
        assert_eq!(end, self.next(), "the last run ends at what was given");
        assert!(self.said <= self.taken, "{} said", self.said);
        assert!(self.taken <= self.given, "{} taken", self.taken);
    }
}

#[cfg(test)]
mod tests {
    use tanda_wire::firemq::frame::{Split, split_frame};

    use super::*;

    fn said(outbound: &mut Outbound) -> Vec<(&'static str, u64)> {
        let bytes = outbound.writing().split();
        outbound.on_written(bytes.len());
        let mut rest = &bytes[..];
        let mut said = Vec::new();
        while let Ok(Split::Frame(frame)) = split_frame(rest, 4096) {
            let confirm = Confirm::decode(frame.header).unwrap();
            said.push(if confirm.nack {
                ("nack", confirm.seq)
            } else {
                ("upto", confirm.upto)
            });
            rest = &rest[frame.consumed..];
        }
        said
    }

    fn give(confirms: &mut Confirms, count: u64) -> u64 {
        let first = confirms.give(None);
        for _ in 1..count {
            assert_eq!(confirms.give(Some(first)), first);
        }
        first
    }

    fn answer(confirms: &mut Confirms, first: u64, taken: &[bool], out: &mut Outbound) {
        let outcomes = taken.iter().map(|taken| {
            taken.then_some(()).ok_or(Rejection {
                code: ReplyCode::ResourceError,
                text: "full",
            })
        });
        confirms.answer(first, outcomes, out);
        confirms.say(out);
        confirms.assert_invariants();
    }

    #[test]
    fn one_confirm_says_all_that_was_taken() {
        let (mut confirms, mut out) = (Confirms::default(), Outbound::default());
        let first = give(&mut confirms, 3);
        let second = give(&mut confirms, 1);
        assert_eq!((first, second), (1, 4));
        answer(&mut confirms, first, &[true; 3], &mut out);
        assert_eq!(said(&mut out), [("upto", 3)]);
        answer(&mut confirms, second, &[true], &mut out);
        assert_eq!(said(&mut out), [("upto", 4)]);
        // An answer that comes twice says nothing.
        answer(&mut confirms, second, &[true], &mut out);
        assert_eq!(said(&mut out), []);
    }

    #[test]
    fn what_is_answered_early_waits_for_what_came_before() {
        let (mut confirms, mut out) = (Confirms::default(), Outbound::default());
        let (first, second) = (give(&mut confirms, 2), give(&mut confirms, 2));
        answer(&mut confirms, second, &[true, false], &mut out);
        assert_eq!(said(&mut out), [("nack", 4)]);
        answer(&mut confirms, first, &[true; 2], &mut out);
        assert_eq!(said(&mut out), [("upto", 3)]);
    }

    #[test]
    fn nothing_is_said_to_be_taken_when_nothing_was() {
        let (mut confirms, mut out) = (Confirms::default(), Outbound::default());
        let first = give(&mut confirms, 2);
        answer(&mut confirms, first, &[false; 2], &mut out);
        assert_eq!(said(&mut out), [("nack", 1), ("nack", 2)]);
        let next = give(&mut confirms, 3);
        answer(&mut confirms, next, &[true, false, false], &mut out);
        assert_eq!(said(&mut out), [("nack", 4), ("nack", 5), ("upto", 3)]);
        assert_eq!(confirms.held_bytes(), 0);
    }
}
