//! What a connection is opened with.

use std::fmt;

use tanda_wire::firemq::url::{USER_DEFAULT, VHOST_DEFAULT};

/// Seconds between heartbeats when nothing else is said.
const HEARTBEAT_S: u16 = 20;
/// The largest frame that is taken, in bytes, when nothing else is said.
const FRAME_BYTES_MAX: u32 = 256 * 1024 * 1024;

/// What a connection is opened with.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// The virtual host.
    pub vhost: String,
    /// The user.
    pub user: String,
    /// Its password.
    pub password: String,
    /// What the client calls itself, shown by the server to people; may be empty.
    pub name: String,
    /// Wanted seconds between heartbeats; 0 asks for none. The server may choose a shorter time.
    pub heartbeat_s: u16,
    /// The largest frame that is taken, in bytes. A larger one ends the connection.
    pub frame_bytes_max: u32,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            vhost: VHOST_DEFAULT.to_owned(),
            user: USER_DEFAULT.to_owned(),
            password: USER_DEFAULT.to_owned(),
            name: String::new(),
            heartbeat_s: HEARTBEAT_S,
            frame_bytes_max: FRAME_BYTES_MAX,
        }
    }
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password does not belong into logs.
        f.debug_struct("ConnectionConfig")
            .field("vhost", &self.vhost)
            .field("user", &self.user)
            .field("name", &self.name)
            .field("heartbeat_s", &self.heartbeat_s)
            .field("frame_bytes_max", &self.frame_bytes_max)
            .finish_non_exhaustive()
    }
}
