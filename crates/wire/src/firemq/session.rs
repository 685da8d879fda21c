//! `hello`, `welcome`, `ping`, `pong`, `close`, `flow`: the life of a session.

use core::fmt;

use super::ReplyCode;
use super::field::{Field, Fields};
use super::header_struct::header_struct;
use super::syntax::SyntaxError;
use super::value::RawMap;
use crate::cursor::Reader;

/// The one authentication mechanism there is.
pub const MECHANISM_PLAIN: &str = "plain";

header_struct! {
    /// Opens a session; the first frame of a client.
    #[derive(Debug)]
    pub struct Hello<'a>: Hello {
        /// The protocol's major version; must be [`super::PROTOCOL_VERSION`].
        ver: u64,
        /// The virtual host; empty means `/`.
        vhost: &'a str,
        /// Who the client is.
        auth: Auth<'a>,
        /// Wanted interval in seconds; 0 means no heartbeats.
        heartbeat: u64,
        /// What the client says of itself, for people.
        client: RawMap<'a>,
        /// What the client supports.
        caps: Vec<&'a str>,
    }

    /// Credentials in `hello`.
    #[derive(Copy, Eq)]
    pub struct Auth<'a> {
        /// How they are to be read; [`MECHANISM_PLAIN`].
        mech: &'a str,
        /// The user's name.
        user: &'a str,
        /// Its password; not shown by `Debug`.
        pass: &'a str,
    }

    /// Accepts a session.
    #[derive(Debug, Eq)]
    pub struct Welcome<'a>: Welcome {
        /// The protocol version in use.
        ver: u64,
        /// What the server is.
        server: ServerInfo<'a>,
        /// The connection's name in the management API.
        conn_id: &'a str,
        /// The interval in seconds that both sides keep; 0 means no heartbeats.
        heartbeat: u64,
        /// The largest frame the server takes, counted as [`super::frame`] says.
        max_frame: u64,
        /// What the server supports.
        caps: Vec<&'a str>,
    }

    /// The server in `welcome`.
    #[derive(Debug, Copy, Eq)]
    pub struct ServerInfo<'a> {
        /// Its name.
        name: &'a str,
        /// Its version.
        version: &'a str,
    }

    /// Asks whether the peer is alive.
    #[derive(Debug, Copy, Eq)]
    pub struct Ping: Ping {}

    /// Answers a ping.
    #[derive(Debug, Copy, Eq)]
    pub struct Pong: Pong {}

    /// Announces an orderly close, or answers one.
    #[derive(Debug, Copy, Eq)]
    pub struct Close<'a>: Close {
        /// Why, for programs; 200 is a normal shutdown.
        code: ReplyCode,
        /// Why, for people.
        msg: &'a str,
    }

    /// Asks publishers to pause or to go on.
    #[derive(Debug, Copy, Eq)]
    pub struct Flow: Flow {
        /// Whether to pause.
        pause: bool,
    }
}

impl fmt::Debug for Auth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("mech", &self.mech)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

macro_rules! nested_field {
    ($($Name:ident)*) => {$(
        impl<'a> Field<'a> for $Name<'a> {
            fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
                Self::read_map(r)
            }

            fn is_zero(&self) -> bool {
                *self == Self::default()
            }

            fn write(&self, out: &mut Vec<u8>) {
                self.write_map(out);
            }
        }
    )*};
}

nested_field!(Auth ServerInfo);
