//! What can happen in one step, and how often each is drawn.

/// What can happen in one step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Act,
    ToBroker,
    Transmit,
    ToClient,
    Handle,
    Run,
    TakeFlush,
    RunFlush,
    FinishFlush,
    TakeBackground,
    RunBackground,
    FinishBackground,
    Release,
    Mail,
    Timers,
    Clock,
    Door,
    Backup,
    Script,
    Keys,
}

impl Step {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::ToBroker => "to broker",
            Self::Transmit => "transmit",
            Self::ToClient => "to client",
            Self::Handle => "handle",
            Self::Run => "run",
            Self::TakeFlush => "take flush",
            Self::RunFlush => "run flush",
            Self::FinishFlush => "finish flush",
            Self::TakeBackground => "take background",
            Self::RunBackground => "run background",
            Self::FinishBackground => "finish background",
            Self::Release => "release",
            Self::Mail => "mail",
            Self::Timers => "timers",
            Self::Clock => "clock",
            Self::Door => "door",
            Self::Backup => "back up",
            Self::Script => "script",
            Self::Keys => "keys",
        }
    }
}

/// Draws of one step until something happens.
pub(super) const DRAWS_MAX: usize = 5;

pub(super) const STEPS: &[(Step, u64)] = &[
    (Step::Act, 6),
    (Step::ToBroker, 6),
    (Step::Transmit, 4),
    (Step::ToClient, 6),
    (Step::Handle, 4),
    (Step::Run, 4),
    (Step::TakeFlush, 3),
    (Step::RunFlush, 3),
    (Step::FinishFlush, 3),
    (Step::TakeBackground, 2),
    (Step::RunBackground, 2),
    (Step::FinishBackground, 2),
    (Step::Release, 3),
    (Step::Mail, 5),
    (Step::Timers, 1),
    (Step::Clock, 3),
    (Step::Door, 1),
    (Step::Backup, 1),
    (Step::Script, 3),
    (Step::Keys, 1),
];
