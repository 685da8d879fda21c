//! One Amaquet session under any bytes in any cuts, with any events, answers, refusals and times
//! between.
//!
//! The input is a script. First byte: the bounds of the session, and whether it wants keys. Then
//! steps (`Step`), each a byte and what it needs. After each step the session's invariants hold,
//! its requests come in the order that is promised, and what it wrote is frames that decode and are
//! a server's to send.

mod answers;
mod peer;
mod reader;

use peer::Peer;

use crate::script::Script;

/// Steps of one input: with more, a run says less per second.
const STEPS_MAX: usize = 400;

/// What a step does; its byte modulo their number is its place in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes as they are: a length and they.
    Bytes,
    /// One frame whose length is right: opcode, id, and payload behind its length.
    Frame,
    /// A command of an ordinary conversation: which, and its id.
    Command,
    /// Another request of an ordinary conversation: which, and its id.
    Known,
    /// The answer that the engine owes longest, or another one.
    Answer,
    /// Any event for any token.
    Event,
    /// A message for a subscription: which, and what.
    Watched,
    /// The peer reads: how much.
    Read,
    /// Time passes: `u16` tenths of a second.
    Wait,
    /// The engine's channel is full for so many requests.
    Refuse,
    /// The table of keys has changed: to which.
    Keys,
    /// The server shuts down, gives the connection up, or hears that no more comes.
    End,
    /// The socket is gone.
    Close,
}

impl Step {
    pub(crate) const ALL: [Self; 13] = [
        Self::Bytes,
        Self::Frame,
        Self::Command,
        Self::Known,
        Self::Answer,
        Self::Event,
        Self::Watched,
        Self::Read,
        Self::Wait,
        Self::Refuse,
        Self::Keys,
        Self::End,
        Self::Close,
    ];

    fn from_script(script: &mut Script<'_>) -> Self {
        let at = script.pick(Self::ALL.len());
        Self::ALL.get(at).copied().unwrap_or(Self::Bytes)
    }
}

/// Runs one input.
///
/// # Panics
/// When the session breaks a promise.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let mut peer = Peer::new(script.byte());
    for _ in 0..STEPS_MAX {
        if script.is_empty() {
            break;
        }
        match Step::from_script(&mut script) {
            Step::Bytes => peer.send(script.short()),
            Step::Frame => peer.send_frame(&mut script),
            Step::Command => peer.send_command(&mut script),
            Step::Known => peer.send_known(&mut script),
            Step::Answer => peer.answer(&mut script),
            Step::Event => peer.any_event(&mut script),
            Step::Watched => peer.watched(&mut script),
            Step::Read => {
                let bytes = usize::from(script.u16());
                peer.read(bytes);
            }
            Step::Wait => peer.wait(script.u16()),
            Step::Refuse => peer.refuse(script.byte()),
            Step::Keys => peer.on_keys(&mut script),
            Step::End => peer.end(script.byte()),
            Step::Close => peer.close(),
        }
        peer.check_all();
    }
    peer.finish_all();
}
