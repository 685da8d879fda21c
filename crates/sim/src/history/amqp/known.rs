//! Whether something is there that clients make and remove: yes, no, or nobody knows.

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum There {
    #[default]
    No,
    Maybe,
    Yes,
}

/// Changes of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// Under way.
    open: u32,
    /// Their answer will not come; they may still be done.
    lost: u32,
}

/// What is known of one such thing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) there: There,
    makes: Changes,
    removes: Changes,
    /// Changes to the contrary of each other were under way together: the answers say nothing about
    /// their order.
    is_contested: bool,
}

impl Known {
    const fn changes(&mut self, makes: bool) -> &mut Changes {
        if makes {
            &mut self.makes
        } else {
            &mut self.removes
        }
    }

    /// A change was sent.
    pub(crate) fn on_sent(&mut self, makes: bool) {
        self.changes(makes).open += 1;
        self.is_contested |= self.changes(!makes).open > 0;
        let already = if makes { There::Yes } else { There::No };
        if self.there != already {
            self.there = There::Maybe;
        }
    }

    /// A change was answered. It is so, unless a change to the contrary may have come after it.
    pub(crate) const fn on_answered(&mut self, makes: bool) {
        let changes = self.changes(makes);
        changes.open = changes.open.saturating_sub(1);
        let was_alone = !self.is_contested;
        let others = self.changes(!makes);
        if others.open == 0 && others.lost == 0 && was_alone {
            self.there = if makes { There::Yes } else { There::No };
        } else {
            self.there = There::Maybe;
        }
        self.is_contested &= self.makes.open + self.removes.open > 0;
    }

    /// A change was refused: nothing was done.
    pub(crate) const fn on_refused(&mut self, makes: bool) {
        let changes = self.changes(makes);
        changes.open = changes.open.saturating_sub(1);
        self.is_contested &= self.makes.open + self.removes.open > 0;
    }

    /// Changes of this direction may still be done.
    pub(crate) const fn has_open(&self, makes: bool) -> bool {
        let changes = if makes { &self.makes } else { &self.removes };
        changes.open + changes.lost > 0
    }

    /// Something else than a change has taken it away, or may have: so much is there at most,
    /// unless a change may still make it.
    pub(crate) fn cap(&mut self, most: There) {
        let most = if self.has_open(true) {
            most.max(There::Maybe)
        } else {
            most
        };
        self.there = self.there.min(most);
    }

    /// Nothing is under way, and it was looked for.
    pub(crate) fn observe(&mut self, is_there: bool) {
        *self = Self::default();
        self.there = if is_there { There::Yes } else { There::No };
    }

    /// The answer will not come. `may_come` says whether the change itself may still.
    pub(crate) fn on_lost(&mut self, makes: bool, may_come: bool) {
        let changes = self.changes(makes);
        changes.open = changes.open.saturating_sub(1);
        changes.lost += u32::from(may_come);
    }

    /// The broker has started again: nothing that was sent before is still on its way.
    pub(crate) const fn on_crash(&mut self, is_durable: bool) {
        self.makes.lost = 0;
        self.removes.lost = 0;
        self.is_contested = false;
        if !is_durable {
            self.there = There::No;
        }
    }
}
