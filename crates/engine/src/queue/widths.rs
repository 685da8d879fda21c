//! Messages that do not fit the frames of every consumer, kept apart from the others.
//!
//! Whether a message fits a frame is only known once it was encoded: a session that could not send
//! one says so. From then on it stands in a lane of its own *width*, beside the lane that its
//! fairness key has at its priority, and the lanes of a width have a ring of their own. Consumers
//! whose frames are too small pass over the whole ring, others take turns with it. So nothing is
//! looked at twice, and a queue without such messages pays nothing.

use crate::FrameLimit;

/// Widths that are told apart in one queue; what is over that fits no frame at all.
const WIDTHS_MAX: usize = 32;

/// The largest frame, of each protocol, that a message did not fit; 0 = none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Width {
    amqp: u32,
    fire: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    width: Width,
    /// Lanes of this width; 0 = it is free.
    lanes: u32,
    /// Messages in them, wherever they are.
    messages: u64,
}

/// The widths in use, numbered from 1; 0 is that of messages that fitted every frame so far.
#[derive(Debug, Default)]
pub(super) struct Widths {
    used: Vec<Used>,
}

impl Width {
    const WIDEST: Self = Self {
        amqp: u32::MAX,
        fire: u32::MAX,
    };

    const fn fits(self, limit: FrameLimit) -> bool {
        match limit {
            FrameLimit::None => true,
            FrameLimit::Amqp(bytes) => bytes > self.amqp,
            FrameLimit::Fire(bytes) => bytes > self.fire,
        }
    }

    fn over(self, limit: FrameLimit) -> Self {
        match limit {
            FrameLimit::None => self,
            FrameLimit::Amqp(bytes) => Self {
                amqp: self.amqp.max(bytes),
                ..self
            },
            FrameLimit::Fire(bytes) => Self {
                fire: self.fire.max(bytes),
                ..self
            },
        }
    }
}

impl Widths {
    /// No message has been found not to fit.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    fn at(&self, number: u8) -> Width {
        let index = usize::from(number).checked_sub(1);
        let used = index.and_then(|index| self.used.get(index));
        used.map_or_else(Width::default, |used| used.width)
    }

    fn used_mut(&mut self, number: u8) -> Option<&mut Used> {
        let index = usize::from(number).checked_sub(1)?;
        self.used.get_mut(index)
    }

    /// Whether messages of a width fit frames of this size, as far as is known.
    pub(super) fn fits(&self, number: u8, limit: FrameLimit) -> bool {
        number == 0 || self.at(number).fits(limit)
    }

    /// The number for messages of a width that did not fit a frame of this size either.
    pub(super) fn over(&mut self, number: u8, limit: FrameLimit) -> u8 {
        let wanted = self.at(number).over(limit);
        if wanted == Width::default() {
            return number;
        }
        let found = |wanted: Width, used: &[Used]| {
            used.iter()
                .position(|it| it.lanes > 0 && it.width == wanted)
        };
        let index = found(wanted, &self.used).or_else(|| self.add(wanted));
        let index = index.or_else(|| found(Width::WIDEST, &self.used));
        index.map_or(number, number_of)
    }

    /// The last place is for what is over all the others.
    fn add(&mut self, width: Width) -> Option<usize> {
        let free = self.used.iter().position(|it| it.lanes == 0);
        let index = free.unwrap_or(self.used.len());
        if index >= WIDTHS_MAX {
            return None;
        }
        let is_last = index + 1 == WIDTHS_MAX;
        let used = Used {
            width: if is_last { Width::WIDEST } else { width },
            ..Used::default()
        };
        match self.used.get_mut(index) {
            Some(place) => *place = used,
            None => self.used.push(used),
        }
        Some(index)
    }

    pub(super) fn add_lane(&mut self, number: u8) {
        if let Some(used) = self.used_mut(number) {
            used.lanes += 1;
        }
    }

    pub(super) fn add_message(&mut self, number: u8) {
        if let Some(used) = self.used_mut(number) {
            used.messages += 1;
        }
    }

    pub(super) fn remove_message(&mut self, number: u8) {
        if let Some(used) = self.used_mut(number) {
            used.messages -= 1;
        }
    }

    /// A lane is gone; the last one takes its width along.
    pub(super) fn remove_lane(&mut self, number: u8) {
        if let Some(used) = self.used_mut(number) {
            used.lanes -= 1;
        }
        while self.used.pop_if(|it| it.lanes == 0).is_some() {}
        if self.used.is_empty() {
            self.used = Vec::new();
        }
    }

    /// Widths in use with the messages of each, wherever they are.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, u64)> {
        let used = self.used.iter().enumerate().filter(|(_, it)| it.lanes > 0);
        used.map(|(index, it)| (number_of(index), it.messages))
    }
}

fn number_of(index: usize) -> u8 {
    u8::try_from(index + 1).unwrap_or(u8::MAX)
}

const _: () = assert!(WIDTHS_MAX < 255, "numbers are bytes, and 0 is taken");

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(widths: &Widths, number: u8, limits: [FrameLimit; 3]) -> [bool; 3] {
        limits.map(|limit| widths.fits(number, limit))
    }

    fn add(widths: &mut Widths, from: u8, limit: FrameLimit) -> u8 {
        let number = widths.over(from, limit);
        widths.add_lane(number);
        number
    }

    #[test]
    fn what_did_not_fit_a_frame_fits_no_smaller_one_of_that_protocol() {
        let mut widths = Widths::default();
        assert!(widths.is_empty());
        let small = add(&mut widths, 0, FrameLimit::Amqp(4096));
        let limits = [
            FrameLimit::Amqp(4096),
            FrameLimit::Amqp(8192),
            FrameLimit::Fire(1),
        ];
        assert_eq!(fits(&widths, 0, limits), [true; 3]);
        assert_eq!(fits(&widths, small, limits), [false, true, true]);
        let both = add(&mut widths, small, FrameLimit::Fire(1));
        assert_eq!(fits(&widths, both, limits), [false, true, false]);
        assert_eq!(widths.over(0, FrameLimit::Amqp(4096)), small);
        assert!(widths.fits(both, FrameLimit::None));
    }

    #[test]
    fn widths_go_with_their_lanes() {
        let mut widths = Widths::default();
        let a = add(&mut widths, 0, FrameLimit::Amqp(1));
        let b = add(&mut widths, 0, FrameLimit::Amqp(2));
        widths.remove_lane(a);
        assert_eq!(widths.iter().collect::<Vec<_>>(), [(b, 0)]);
        assert_eq!(add(&mut widths, 0, FrameLimit::Fire(3)), a);
        widths.remove_lane(a);
        widths.remove_lane(b);
        assert!(widths.is_empty());
    }

    #[test]
    fn more_than_can_be_told_apart_fits_no_frame() {
        let mut widths = Widths::default();
        for bytes in 1..1000 {
            let number = add(&mut widths, 0, FrameLimit::Amqp(bytes));
            assert!(!widths.fits(number, FrameLimit::Amqp(bytes)));
            let is_over = bytes as usize >= WIDTHS_MAX;
            assert_eq!(widths.fits(number, FrameLimit::Amqp(2000)), !is_over);
        }
        assert_eq!(widths.iter().count(), WIDTHS_MAX);
    }
}
