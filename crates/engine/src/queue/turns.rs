//! Consumers that can take a message, in the order of their turns: those of higher priority first,
//! equals one after the other.

use std::collections::VecDeque;

use crate::FrameLimit;

/// The line of consumers. Almost always all have one priority and frames of one size.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Highest priority first; none is empty but the only one, which stays.
    levels: Vec<Level>,
    /// That of who joins next.
    ticket: u64,
}

#[derive(Debug)]
struct Level {
    priority: i32,
    /// None is empty but the only one, which stays.
    lines: Vec<Line>,
}

/// Those of one priority whose frames have one size.
#[derive(Debug)]
struct Line {
    limit: FrameLimit,
    /// Consumers, each with the ticket by which those of other sizes come before or after it.
    line: VecDeque<(u64, u32)>,
}

/// A consumer whose turn it is, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) consumer: u32,
    level: usize,
    line: usize,
}

impl Turns {
    /// Whose turn it is, of those whose frames can carry something.
    pub(crate) fn front(&self, may: impl Fn(FrameLimit) -> bool) -> Option<Turn> {
        self.levels.iter().enumerate().find_map(|(level, it)| {
            let fronts = it.lines.iter().enumerate().filter_map(|(line, it)| {
                let (ticket, consumer) = *it.line.front()?;
                let turn = Turn {
                    consumer,
                    level,
                    line,
                };
                may(it.limit).then_some((ticket, turn))
            });
            fronts
                .min_by_key(|(ticket, _)| *ticket)
                .map(|(_, turn)| turn)
        })
    }

    fn line_mut(&mut self, level: usize, line: usize) -> Option<&mut VecDeque<(u64, u32)>> {
        let line = self.levels.get_mut(level)?.lines.get_mut(line)?;
        Some(&mut line.line)
    }

    /// The consumer whose turn it is leaves the line.
    pub(crate) fn pop(&mut self, turn: Turn) {
        if let Some(line) = self.line_mut(turn.level, turn.line) {
            line.pop_front();
        }
        self.drop_if_empty(turn.level, turn.line);
    }

    /// The consumer whose turn it was goes behind its equals.
    pub(crate) fn rotate(&mut self, turn: Turn) {
        let ticket = self.new_ticket();
        if let Some(line) = self.line_mut(turn.level, turn.line)
            && let Some((_, consumer)) = line.pop_front()
        {
            line.push_back((ticket, consumer));
        }
    }

    const fn new_ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    /// A consumer goes behind its equals.
    pub(crate) fn push(&mut self, (priority, limit): (i32, FrameLimit), consumer: u32) {
        let ticket = self.new_ticket();
        let place = (ticket, consumer);
        let at = self
            .levels
            .partition_point(|level| level.priority > priority);
        let level = self.levels.get_mut(at);
        if let Some(level) = level.filter(|level| level.priority == priority) {
            let mut lines = level.lines.iter_mut();
            if let Some(line) = lines.find(|line| line.limit == limit) {
                return line.line.push_back(place);
            }
            let mut line = level.unused_line();
            line.push_back(place);
            return level.lines.push(Line { limit, line });
        }
        let mut line = VecDeque::new();
        let mut at = at;
        if let [only] = self.levels.as_mut_slice()
            && let [it] = only.lines.as_mut_slice()
            && it.line.is_empty()
        {
            line = core::mem::take(&mut it.line);
            self.levels.clear();
            at = 0;
        }
        line.push_back(place);
        let lines = vec![Line { limit, line }];
        self.levels.insert(at, Level { priority, lines });
    }

    /// A consumer leaves the line, wherever it is.
    pub(crate) fn remove(&mut self, (priority, limit): (i32, FrameLimit), consumer: u32) {
        let at = self
            .levels
            .partition_point(|level| level.priority > priority);
        let Some(level) = self.levels.get_mut(at) else {
            return;
        };
        let Some(line) = level.lines.iter().position(|line| line.limit == limit) else {
            return;
        };
        if let Some(it) = level.lines.get_mut(line) {
            it.line.retain(|(_, other)| *other != consumer);
        }
        self.drop_if_empty(at, line);
    }

    /// The only one stays: consumers that come and go with each message are to cost no memory.
    fn drop_if_empty(&mut self, level: usize, line: usize) {
        let is_only = self.levels.len() == 1;
        let Some(it) = self.levels.get_mut(level) else {
            return;
        };
        if it.lines.get(line).is_none_or(|line| !line.line.is_empty()) {
            return;
        }
        if it.lines.len() > 1 {
            it.lines.remove(line);
        } else if !is_only {
            self.levels.remove(level);
        }
    }

    /// Everybody in line, by priority, in the order of their turns.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.levels.iter().flat_map(|level| {
            let lines = level.lines.iter().flat_map(|line| line.line.iter());
            let mut all: Vec<_> = lines.copied().collect();
            all.sort_unstable();
            all.into_iter().map(|(_, consumer)| consumer)
        })
    }
}

impl Level {
    /// The memory of a line in which nobody stands, which goes.
    fn unused_line(&mut self) -> VecDeque<(u64, u32)> {
        let is_unused = |it: &mut Line| it.line.is_empty();
        self.lines
            .pop_if(is_unused)
            .map_or_else(VecDeque::new, |it| it.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: FrameLimit = FrameLimit::None;
    const SMALL: FrameLimit = FrameLimit::Amqp(4096);

    fn line(turns: &Turns) -> Vec<u32> {
        turns.iter().collect()
    }

    fn front(turns: &Turns) -> Option<Turn> {
        turns.front(|_| true)
    }

    fn rotate(turns: &mut Turns) {
        let turn = front(turns).unwrap();
        turns.rotate(turn);
    }

    fn pop(turns: &mut Turns) -> Option<u32> {
        let turn = front(turns)?;
        turns.pop(turn);
        Some(turn.consumer)
    }

    #[test]
    fn higher_priorities_come_first_and_equals_take_turns() {
        for small in [ANY, SMALL] {
            let mut turns = Turns::default();
            let all = [
                (0, ANY, 1),
                (5, ANY, 2),
                (0, small, 3),
                (-1, small, 4),
                (5, small, 5),
            ];
            for (priority, limit, consumer) in all {
                turns.push((priority, limit), consumer);
            }
            assert_eq!(line(&turns), [2, 5, 1, 3, 4]);
            rotate(&mut turns);
            assert_eq!(line(&turns), [5, 2, 1, 3, 4]);
            assert_eq!(pop(&mut turns), Some(5));
            turns.remove((0, ANY), 1);
            turns.remove((7, ANY), 3);
            assert_eq!(line(&turns), [2, 3, 4]);
            assert_eq!(pop(&mut turns), Some(2));
            rotate(&mut turns);
            assert_eq!(line(&turns), [3, 4]);
            turns.remove((0, small), 3);
            turns.remove((-1, small), 4);
            assert_eq!(pop(&mut turns), None);
        }
    }

    #[test]
    fn those_whose_frames_carry_nothing_are_passed_over_and_keep_their_places() {
        let mut turns = Turns::default();
        for consumer in 0..6 {
            let limit = if consumer % 2 == 0 { SMALL } else { ANY };
            turns.push((0, limit), consumer);
        }
        turns.push((-1, ANY), 6);
        let large = |turns: &Turns| turns.front(|limit| limit == ANY);
        for expected in [1, 3, 5, 1] {
            let turn = large(&turns).unwrap();
            assert_eq!(turn.consumer, expected);
            turns.rotate(turn);
        }
        assert_eq!(line(&turns), [0, 2, 4, 3, 5, 1, 6]);
        for _ in 0..4 {
            let turn = large(&turns).unwrap();
            turns.pop(turn);
        }
        assert!(large(&turns).is_none());
        assert_eq!(line(&turns), [0, 2, 4]);
    }
}
