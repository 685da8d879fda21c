//! Consumers that can take a message, in the order of their turns: those of higher priority first,
//! equals one after the other.

use std::collections::VecDeque;

/// The line of consumers. Almost always all have one priority.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Highest priority first; none is empty but the only one, which stays.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    priority: i32,
    line: VecDeque<u32>,
}

impl Turns {
    /// Nobody is in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.levels
            .first()
            .is_none_or(|level| level.line.is_empty())
    }

    /// Whose turn it is.
    pub(crate) fn front(&self) -> Option<u32> {
        self.levels.first()?.line.front().copied()
    }

    /// The consumer whose turn it is leaves the line.
    pub(crate) fn pop_front(&mut self) -> Option<u32> {
        let consumer = self.levels.first_mut()?.line.pop_front();
        self.drop_if_empty(0);
        consumer
    }

    /// The consumer whose turn it was goes behind its equals.
    pub(crate) fn rotate(&mut self) {
        if let Some(level) = self.levels.first_mut()
            && level.line.len() > 1
        {
            level.line.rotate_left(1);
        }
    }

    /// A consumer goes behind its equals.
    pub(crate) fn push(&mut self, priority: i32, consumer: u32) {
        let at = self
            .levels
            .partition_point(|level| level.priority > priority);
        let level = self.levels.get_mut(at);
        if let Some(level) = level.filter(|level| level.priority == priority) {
            level.line.push_back(consumer);
            return;
        }
        let mut line = VecDeque::new();
        let mut at = at;
        if self.is_empty()
            && let Some(empty) = self.levels.pop()
        {
            (line, at) = (empty.line, 0);
        }
        line.push_back(consumer);
        self.levels.insert(at, Level { priority, line });
    }

    /// A consumer leaves the line, wherever it is.
    pub(crate) fn remove(&mut self, priority: i32, consumer: u32) {
        let at = self
            .levels
            .partition_point(|level| level.priority > priority);
        let Some(level) = self.levels.get_mut(at) else {
            return;
        };
        level.line.retain(|other| *other != consumer);
        self.drop_if_empty(at);
    }

    /// The only one stays: consumers that come and go with each message are to cost no memory.
    fn drop_if_empty(&mut self, at: usize) {
        let is_empty = self
            .levels
            .get(at)
            .is_some_and(|level| level.line.is_empty());
        if is_empty && self.levels.len() > 1 {
            self.levels.remove(at);
        }
    }

    /// Everybody in line, in the order of their turns.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.levels
            .iter()
            .flat_map(|level| level.line.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(turns: &Turns) -> Vec<u32> {
        turns.iter().collect()
    }

    #[test]
    fn higher_priorities_come_first_and_equals_take_turns() {
        let mut turns = Turns::default();
        for (priority, consumer) in [(0, 1), (5, 2), (0, 3), (-1, 4), (5, 5)] {
            turns.push(priority, consumer);
        }
        assert_eq!(line(&turns), [2, 5, 1, 3, 4]);
        turns.rotate();
        assert_eq!(line(&turns), [5, 2, 1, 3, 4]);
        assert_eq!(turns.pop_front(), Some(5));
        turns.remove(0, 1);
        turns.remove(7, 3);
        assert_eq!(line(&turns), [2, 3, 4]);
        assert_eq!((turns.pop_front(), turns.front()), (Some(2), Some(3)));
        turns.rotate();
        assert_eq!(line(&turns), [3, 4]);
        turns.remove(0, 3);
        turns.remove(-1, 4);
        assert!(turns.is_empty() && turns.pop_front().is_none());
    }
}
