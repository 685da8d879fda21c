//! `server.*`: the server itself.

use super::table::commands;

commands! {
    /// Answers, to see that the server does.
    ServerPing = "server.ping", Nothing() {} -> {
        /// `true`.
        pong: Bool,
    }

    /// Tells of the server.
    ServerInfo = "server.info", Admin() {} -> {
        /// The version of the broker.
        version: String,
        /// Milliseconds since its start.
        uptime_ms: U64,
        /// Keys of this virtual host.
        keys: U64,
        /// Connections of all doors but HTTP.
        connections: U64,
        /// Bytes of memory in use.
        memory_bytes: U64,
        /// Queues of this virtual host.
        queues: U64,
    }

    /// Tells of all commands.
    ServerCommands = "server.commands", Nothing() {} -> {
        /// An array of objects: what this page says, one for each command.
        commands: Object,
    }
}
