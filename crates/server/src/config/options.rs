//! Every option, declared once.
//!
//! One line here gives the field of [`Config`], the flag, the environment variable, the key in
//! `tanda.toml`, the default, the bounds and the documentation.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::{
    ConfiguredUser,
    load::{Layers, Mistake},
    setting::{
        Authenticate, BackoffShape, ByteSize, CertificateName, ClientAuth, ConfiguredSecret, Kind,
        LogLevel, Setting,
    },
};

/// What is known of an option besides its value.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Key in `tanda.toml`; dots are tables.
    pub key: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// Smallest and largest value allowed, as one would write them.
    pub range: Option<(&'static str, &'static str)>,
    /// What it does.
    pub doc: &'static str,
}

impl OptionSpec {
    /// Its flag, without the dashes in front: `limits.max_body` is `limits-max-body`.
    #[must_use]
    pub fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// Its environment variable: `limits.max_body` is `TANDA_LIMITS_MAX_BODY`.
    #[must_use]
    pub fn env(&self) -> String {
        format!("TANDA_{}", self.key.replace('.', "_").to_uppercase())
    }
}

macro_rules! options {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $ty:ty = $key:literal, $default:literal $(, $min:literal ..= $max:literal)?;
    )+) => {
        /// The configuration, resolved and checked.
        #[derive(Clone, Debug)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $field: $ty, )+
            /// `[[users]]`, which only the file can have.
            pub users: Vec<ConfiguredUser>,
        }

        /// Every option, in the order in which they are documented.
        pub const OPTIONS: &[OptionSpec] = &[
            $( OptionSpec {
                key: $key,
                kind: <$ty as Setting>::KIND,
                default: $default,
                range: range!($($min, $max)?),
                doc: concat!($($doc),+),
            }, )+
        ];

        impl Config {
            /// Reads every option from its strongest layer. `None` when any was wrong; what was
            /// wrong is in `mistakes`.
            pub(super) fn resolve(layers: &Layers, mistakes: &mut Vec<Mistake>) -> Option<Self> {
                $( let $field = layers.read::<$ty>(
                    $key,
                    $default,
                    range!($($min, $max)?),
                    mistakes,
                ); )+
                let users = layers.users.clone();
                Some(Self { $( $field: $field?, )+ users })
            }
        }
    };
}

macro_rules! range {
    () => {
        None
    };
    ($min:literal, $max:literal) => {
        Some(($min, $max))
    };
}

options! {
    /// Directory of everything that is kept; made when it does not exist.
    data_dir: PathBuf = "data_dir", "tanda-data";
    /// Address of the Fila door. Port 0 picks a free port.
    fila: SocketAddr = "fila", "127.0.0.1:5555";
    /// Address of the Fila door with TLS, which is open when `tls.certificate` is given. Empty:
    /// 127.0.0.1:5556. Port 0 picks a free port.
    fila_tls: Option<SocketAddr> = "fila_tls", "";
    /// Address of the AMQP 0-9-1 door. Port 0 picks a free port.
    amqp: SocketAddr = "amqp", "127.0.0.1:5672";
    /// Address of the AMQP door with TLS, which is open when `tls.certificate` is given. Empty:
    /// 127.0.0.1:5671. Port 0 picks a free port.
    amqp_tls: Option<SocketAddr> = "amqp_tls", "";
    /// Address of the FireMQ door. Port 0 picks a free port.
    firemq: SocketAddr = "firemq", "127.0.0.1:5673";
    /// Address of the FireMQ door with TLS, which is open when `tls.certificate` is given. Empty:
    /// 127.0.0.1:5674. Port 0 picks a free port.
    firemq_tls: Option<SocketAddr> = "firemq_tls", "";
    /// Address of the Amaquet door; in a file with a section `[amaquet]` its `address`. Port 0
    /// picks a free port.
    amaquet: SocketAddr = "amaquet", "127.0.0.1:7272";
    /// Address of the Amaquet door with TLS, which is open when `tls.certificate` is given. Empty:
    /// 127.0.0.1:7273. Port 0 picks a free port.
    amaquet_tls: Option<SocketAddr> = "amaquet_tls", "";
    /// Address of the HTTP door, which also takes FireMQ over WebSocket at `/fire`. Port 0 picks a
    /// free port.
    http: SocketAddr = "http", "127.0.0.1:15672";
    /// Address of the HTTP door with TLS, which is open when `tls.certificate` is given. Empty:
    /// 127.0.0.1:15671. Port 0 picks a free port.
    http_tls: Option<SocketAddr> = "http_tls", "";
    /// Do not open the Fila door.
    no_fila: bool = "no_fila", "false";
    /// Do not open the Fila door with TLS.
    no_fila_tls: bool = "no_fila_tls", "false";
    /// Do not open the AMQP door.
    no_amqp: bool = "no_amqp", "false";
    /// Do not open the AMQP door with TLS.
    no_amqp_tls: bool = "no_amqp_tls", "false";
    /// Do not open the FireMQ door.
    no_firemq: bool = "no_firemq", "false";
    /// Do not open the FireMQ door with TLS.
    no_firemq_tls: bool = "no_firemq_tls", "false";
    /// Do not open the Amaquet door.
    no_amaquet: bool = "no_amaquet", "false";
    /// Do not open the Amaquet door with TLS.
    no_amaquet_tls: bool = "no_amaquet_tls", "false";
    /// Do not take FireMQ over WebSocket at the HTTP doors.
    no_firemq_ws: bool = "no_firemq_ws", "false";
    /// Do not open the HTTP door.
    no_http: bool = "no_http", "false";
    /// Do not open the HTTP door with TLS.
    no_http_tls: bool = "no_http_tls", "false";
    /// Allow doors on addresses that other machines can reach, although nobody has to prove who
    /// they are.
    allow_unauthenticated: bool = "allow_unauthenticated", "false";
    /// Address told to clients that ask where a queue lives. Empty: the address of the Fila door.
    advertised_addr: String = "advertised_addr", "";
    /// Host names by which the HTTP door may be called, besides IP addresses and `localhost`.
    http_hosts: Vec<String> = "http_hosts", "";
    /// Origins of web pages, like `https://shop.example`, that may log in as guest over WebSocket,
    /// besides those of this machine and of the HTTP door itself. Pages from elsewhere need
    /// another user.
    firemq_ws_origins: Vec<String> = "firemq_ws_origins", "";
    /// Whether clients must show an API key. `auto`: when a bootstrap key is configured, or was
    /// ever made in this data directory.
    auth_enabled: Authenticate = "auth.enabled", "auto";
    /// Secret of the first API key, which may do everything: at least 32 characters. Better from
    /// the environment or a file than as a flag, which all users of the machine can see.
    auth_bootstrap_apikey: Option<ConfiguredSecret> = "auth.bootstrap_apikey", "";
    /// File that holds this secret and nothing else.
    auth_bootstrap_apikey_file: Option<PathBuf> = "auth.bootstrap_apikey_file", "";
    /// Whether the user `guest` may log in with its first password, `guest`. `auto`: where clients
    /// of other doors need not show an API key.
    auth_guest: Authenticate = "auth.guest", "auto";
    /// Users who may only come from this machine.
    auth_loopback_users: Vec<String> = "auth.loopback_users", "guest";
    /// Which name in a client's certificate is the user's, who logs in with it (EXTERNAL).
    auth_certificate_name: CertificateName = "auth.certificate_name", "common_name";
    /// File of definitions (virtual hosts, users, permissions, exchanges, queues, bindings, as
    /// RabbitMQ exports them) that is loaded at every start.
    load_definitions: Option<PathBuf> = "load_definitions", "";
    /// PEM file with the certificate of the doors with TLS: first its own, then those between it
    /// and its authority.
    tls_certificate: Option<PathBuf> = "tls.certificate", "";
    /// PEM file with the private key of that certificate, not encrypted.
    tls_key: Option<PathBuf> = "tls.key", "";
    /// PEM file with the authorities whose certificates clients may show. Empty: clients are not
    /// asked for one.
    tls_client_ca: Option<PathBuf> = "tls.client_ca", "";
    /// Whether clients must show a certificate, when `tls.client_ca` is given.
    tls_client_auth: ClientAuth = "tls.client_auth", "required";
    /// How often the files of TLS are looked at; changed ones are read again, as on SIGHUP, and
    /// serve new connections.
    tls_reload_interval: Duration = "tls.reload_interval", "5s", "10ms" ..= "1d";
    /// How much is written to standard error.
    log_level: LogLevel = "log.level", "info";

    /// Length of a lease, for queues that do not say.
    queue_visibility_timeout: Duration = "queue.visibility_timeout", "30s", "1ms" ..= "365d";
    /// How long a deduplication key is remembered after its message left, for queues that do not
    /// say.
    queue_dedup_window: Duration = "queue.dedup_window", "10m", "1ms" ..= "365d";
    /// Deliveries of a message in total before it becomes a dead letter, for queues that do not
    /// say.
    queue_max_attempts: u32 = "queue.max_attempts", "3", "1" ..= "1000000";
    /// Shape of the delay before a retry, for queues that do not say.
    queue_backoff: BackoffShape = "queue.backoff", "exponential";
    /// Delay before the first retry, for queues that do not say.
    queue_backoff_initial: Duration = "queue.backoff_initial", "1s", "1ms" ..= "365d";
    /// Longest delay before a retry, for queues that do not say.
    queue_backoff_max: Duration = "queue.backoff_max", "60s", "1ms" ..= "365d";
    /// After a restart, how long consumers of a queue with fast deliveries may claim what they
    /// held, for queues that do not say.
    queue_reclaim_grace: Duration = "queue.reclaim_grace", "5s", "1ms" ..= "1h";
    /// Messages that a fairness key of weight 1 may take in one turn.
    queue_quantum: u32 = "queue.quantum", "1", "1" ..= "1000";

    /// Virtual host that the Amaquet door serves.
    amaquet_vhost: String = "amaquet.vhost", "/";
    /// Largest payload of an Amaquet frame, in either direction.
    amaquet_max_payload: ByteSize = "amaquet.limits.max_payload", "16MiB", "1KiB" ..= "64MiB";
    /// Time in which the rest of an Amaquet frame must come once its beginning is there.
    amaquet_partial_frame_timeout: Duration
        = "amaquet.limits.partial_frame_timeout", "10s", "100ms" ..= "1h";
    /// Amaquet commands of one connection that are not answered yet; more are refused.
    amaquet_active_per_connection: u32
        = "amaquet.limits.active_per_connection", "256", "1" ..= "32000";
    /// The same of all connections together.
    amaquet_active_total: u32 = "amaquet.limits.active_total", "16384", "1" ..= "10000000";
    /// Payloads that Amaquet frames have announced and that are not handled yet, of all
    /// connections together; a connection that announces more is closed.
    amaquet_payload_reservation: ByteSize
        = "amaquet.limits.payload_reservation", "256MiB", "1KiB" ..= "1TiB";
    /// Longest time that an Amaquet command may ask to wait.
    amaquet_max_wait: Duration = "amaquet.limits.max_wait", "5m", "1ms" ..= "1d";

    /// Connections at a time: Fila, AMQP, FireMQ and Amaquet, with and without TLS together,
    /// unfinished handshakes included.
    /// When all are there, a new one takes the place of the oldest that has not introduced itself.
    limits_connections_max: u32 = "limits.connections_max", "10000", "1" ..= "1000000";
    /// Largest frame that is taken from a peer, and sent to one.
    limits_max_frame: ByteSize = "limits.max_frame", "16MiB", "64KiB" ..= "1GiB";
    /// Largest request put together from continuation frames.
    limits_max_body: ByteSize = "limits.max_body", "256MiB", "64KiB" ..= "1GiB";
    /// Largest message, headers included.
    limits_max_message: ByteSize = "limits.max_message", "128MiB", "1KiB" ..= "192MiB";
    /// Requests of one connection of which only some continuation frames have come.
    limits_unfinished_max: u32 = "limits.unfinished_max", "16", "1" ..= "1024";
    /// Requests of one connection that wait for their answer; more are not read before that.
    limits_requests_max: u32 = "limits.requests_max", "1024", "1" ..= "32000";
    /// Subscriptions of one connection.
    limits_subscriptions_max: u32 = "limits.subscriptions_max", "1024", "1" ..= "32000";
    /// Bytes of deliveries on their way to one connection; a slow reader gets no more until it has
    /// read.
    limits_outbound: ByteSize = "limits.outbound", "8MiB", "64KiB" ..= "1GiB";
    /// Bytes of answers that one connection may leave unread before its requests are not read any
    /// more.
    limits_replies: ByteSize = "limits.replies", "4MiB", "64KiB" ..= "1GiB";
    /// Memory of all these connections together: requests of which a part has come, and what is
    /// sent to peers and not read by them. Over it, connections that hold more than their share
    /// end.
    limits_connections_memory: ByteSize = "limits.connections_memory", "1GiB", "1MiB" ..= "1TiB";
    /// Queues, their dead-letter queues not counted.
    limits_queues_max: u32 = "limits.queues_max", "100000", "1" ..= "10000000";
    /// Virtual hosts, `/` included.
    limits_vhosts_max: u32 = "limits.vhosts_max", "1000", "1" ..= "100000";
    /// Exchanges of all virtual hosts, with the five that each has from the beginning.
    limits_exchanges_max: u32 = "limits.exchanges_max", "100000", "5" ..= "10000000";
    /// Bindings of all exchanges, those of the default exchange not counted.
    limits_bindings_max: u32 = "limits.bindings_max", "1000000", "1" ..= "10000000";
    /// Largest weight of a fairness key; a larger one counts as this.
    limits_weight_max: u32 = "limits.weight_max", "1000000", "1" ..= "4294967295";
    /// API keys.
    limits_api_keys_max: u32 = "limits.api_keys_max", "10000", "1" ..= "100000";
    /// Users.
    limits_users_max: u32 = "limits.users_max", "10000", "1" ..= "1000000";
    /// Requests that wait for the broker's thread, all connections together; above it they are
    /// refused as ChannelFull.
    limits_waiting_max: u32 = "limits.waiting_max", "65536", "64" ..= "10000000";
    /// Bytes of requests that wait for the broker's thread; above it they are refused as
    /// ChannelFull.
    limits_waiting: ByteSize = "limits.waiting", "64MiB", "1MiB" ..= "16GiB";
    /// What a refused client is told to wait before it tries again.
    limits_retry_after: Duration = "limits.retry_after", "50ms", "1ms" ..= "1m";
    /// Time for a new connection to introduce itself.
    limits_handshake_timeout: Duration = "limits.handshake_timeout", "10s", "100ms" ..= "10m";
    /// Time without progress in the middle of a frame, or while a peer reads nothing of what it is
    /// sent, after which the connection is closed.
    limits_frame_timeout: Duration = "limits.frame_timeout", "60s", "100ms" ..= "1h";
    /// Silence after which the broker asks a peer whether it still lives.
    limits_ping_idle: Duration = "limits.ping_idle", "15s", "100ms" ..= "1h";
    /// Time for the answer to that; then the connection is closed.
    limits_pong_timeout: Duration = "limits.pong_timeout", "30s", "100ms" ..= "1h";
    /// Largest AMQP frame, in either direction; clients may ask for smaller ones.
    limits_amqp_max_frame: ByteSize = "limits.amqp_max_frame", "128KiB", "4KiB" ..= "16MiB";
    /// Largest FireMQ frame that is taken from a client.
    limits_firemq_max_frame: ByteSize = "limits.firemq_max_frame", "16MiB", "64KiB" ..= "1GiB";
    /// Channels of one AMQP connection.
    limits_channels_max: u32 = "limits.channels_max", "2047", "1" ..= "65535";
    /// How often AMQP and FireMQ peers show that they live, when the client does not ask for
    /// something else.
    /// 0s: not at all.
    limits_heartbeat: Duration = "limits.heartbeat", "60s", "0s" ..= "10h";
    /// Deliveries of one AMQP channel that are not acknowledged; a consumer without a prefetch
    /// limit has this one.
    limits_unacked_max: u32 = "limits.unacked_max", "1000000", "1" ..= "16000000";
    /// How long an AMQP delivery may stay without acknowledgement; then it is requeued and its
    /// channel closed. 0s: for ever.
    limits_ack_timeout: Duration = "limits.ack_timeout", "30m", "0s" ..= "365d";

    /// CPU time of one call of a queue's script, and of loading it.
    script_time_limit: Duration = "script.time_limit", "10ms", "1ms" ..= "1s";
    /// Memory of one script, beside the 0.6 MiB that any takes: its data, the message, and garbage.
    script_memory_limit: ByteSize = "script.memory_limit", "1MiB", "256KiB" ..= "64MiB";

    /// Newest part of the log that is kept in memory, so that it is delivered without reading the
    /// disk.
    memory_log_cache: ByteSize = "memory.log_cache", "64MiB", "1MiB" ..= "64GiB";
    /// Memory for messages that wait and for the log's cache; over it new messages are refused
    /// while
    /// settling goes on. 0B: 60 % of what the machine, or the process's control group, has.
    memory_limit: ByteSize = "memory.limit", "0B", "0B" ..= "16TiB";
    /// Log between two snapshots, and so about the most that a start reads again.
    snapshot_bytes: ByteSize = "snapshot.bytes", "256MiB", "1MiB" ..= "1TiB";
    /// Bytes per second at which old contents are copied out of mostly dead parts of the log.
    reclaim_rate: ByteSize = "reclaim.rate", "32MiB", "64KiB" ..= "16GiB";
    /// Free space below which new messages are refused while settling goes on.
    disk_reserve: ByteSize = "disk.reserve", "64MiB", "0B" ..= "1TiB";
    /// Free space below which publishers of AMQP and FireMQ are asked to wait, before anybody has
    /// to be refused. 0B: `disk.reserve` and 256MiB.
    disk_alarm: ByteSize = "disk.alarm", "0B", "0B" ..= "1024TiB";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_message_fits_a_record_of_the_log() {
        // Beside it: the messages before it in the same record, its keys, the record's head.
        const OTHERS_BYTES: u64 = 4 << 20;
        let option = OPTIONS
            .iter()
            .find(|option| option.key == "limits.max_message")
            .unwrap();
        let largest = ByteSize::parse(option.range.unwrap().1).unwrap();
        assert!(largest.0 + OTHERS_BYTES <= tanda_wal::RECORD_BYTES_MAX as u64);
    }
}
