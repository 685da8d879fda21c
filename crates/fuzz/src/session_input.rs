//! One session under any bytes in any cuts, with any events, answers, refusals and times between.
//!
//! The input is a script. First byte: the bounds of the session, and whether it wants keys. Then
//! steps (`Step`), each a byte and what it needs. After each step the session's invariants hold,
//! its requests come in the order that is promised, and what it wrote is frames that decode and are
//! a server's to send.

mod admin_replies;
mod answers;
pub(crate) mod keys;
mod peer;
mod topology_replies;

use peer::Peer;

use crate::script::Script;

/// Steps of one input: with more, a run says less per second.
const STEPS_MAX: usize = 400;

/// The byte of [`Step::Keys`], which came later than the others.
pub(crate) const KEYS_BYTE: u8 = 0xFF;

/// What a step does; its byte modulo their number is its place in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes as they are: a length and they.
    Bytes,
    /// One frame whose length is right: opcode, flags, request id, a length and its body.
    Frame,
    /// A frame of a big body: opcode, request id, `u16` length, the byte it repeats.
    Big,
    /// A handshake: its version and capabilities.
    Handshake,
    /// The answer that the engine owes longest, or another one: which, and what it says.
    Answer,
    /// Any event for any token.
    Event,
    /// Deliveries for a subscription.
    Delivery,
    /// The peer reads: how much.
    Read,
    /// Time passes: `u16` tenths of a second.
    Wait,
    /// The engine's channel is full for so many requests.
    Refuse,
    /// The server shuts down.
    Shutdown,
    /// The socket is gone.
    Close,
    /// The table of keys has changed: to which.
    Keys,
}

impl Step {
    /// Those with a place.
    pub(crate) const ALL: [Self; 12] = [
        Self::Bytes,
        Self::Frame,
        Self::Big,
        Self::Handshake,
        Self::Answer,
        Self::Event,
        Self::Delivery,
        Self::Read,
        Self::Wait,
        Self::Refuse,
        Self::Shutdown,
        Self::Close,
    ];

    fn from_script(script: &mut Script<'_>) -> Self {
        let byte = script.byte();
        if byte == KEYS_BYTE {
            return Self::Keys;
        }
        let at = usize::from(byte) % Self::ALL.len();
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
            Step::Big => peer.send_big(&mut script),
            Step::Handshake => peer.send_handshake(&mut script),
            Step::Answer => peer.answer(&mut script),
            Step::Event => peer.any_event(&mut script),
            Step::Delivery => peer.deliver(&mut script),
            Step::Read => {
                let bytes = usize::from(script.u16());
                peer.read(bytes);
            }
            Step::Wait => peer.wait(&mut script),
            Step::Refuse => peer.refuse(script.byte()),
            Step::Shutdown => peer.shut_down(),
            Step::Close => peer.close(),
            Step::Keys => peer.on_keys(&mut script),
        }
        peer.check();
    }
    peer.finish();
}
