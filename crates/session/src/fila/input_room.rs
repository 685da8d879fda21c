//! Room for a frame of which only the beginning has come.

use bytes::BytesMut;
use tanda_wire::fila::frame::frame_size;

/// Room made at once for a frame that has only begun; more follows as bytes come.
const READ_AHEAD_BYTES: usize = 4 << 10;
/// Room for a frame, as a multiple of what has come of it.
const ROOM_FACTOR: usize = 16;
/// Beyond this much, only as much room again as has come.
const ROOM_AHEAD_BYTES_MAX: usize = 1 << 20;

/// Makes room for the frame that has begun, but not beyond a multiple of what has come of it,
/// because its length is only a claim. Room that is not written to costs no memory; growing in
/// small steps copies what is there each time.
pub(super) fn make_room(input: &mut BytesMut) {
    let missing = frame_size(input)
        .unwrap_or_default()
        .saturating_sub(input.len());
    let ahead = input
        .len()
        .saturating_mul(ROOM_FACTOR)
        .min(ROOM_AHEAD_BYTES_MAX);
    let trusted = input.len().max(ahead).max(READ_AHEAD_BYTES);
    input.reserve(missing.min(trusted));
}
