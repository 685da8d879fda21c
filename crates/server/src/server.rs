//! A running broker: started, addressed, stopped.

mod sockets;

use std::{fmt, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tanda_node::{Node, OpenError};
use tanda_session::fila::Authentication;
use tanda_wal::Disk as _;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    alarms,
    ask::Asker,
    audit::Audit,
    clock::{Clock, wall_now},
    config::Config,
    data_dir::{DataDir, DataDirError},
    definitions,
    disk::RealDisk,
    door, freed_memory, http,
    keys::{self, BootstrapError},
    listen::{self, Listening, Service},
    node_key::NodeKey,
    settings,
    shard::{Shard, Threads},
    tally::Tally,
    tls::{Certificates, TlsFileError, TlsFiles},
    users::{self, Authenticator},
};
use sockets::{Socket, SocketPair, Sockets};

/// What connections get to finish once the broker is told to stop.
const GRACE: Duration = Duration::from_secs(6);
/// What the shard gets after that to finish and sync.
const SYNC_GRACE: Duration = Duration::from_secs(3);
/// HTTP connections at a time.
const HTTP_CONNECTIONS_MAX: usize = 256;

/// A running broker.
#[derive(Debug)]
pub struct Server {
    shard: Shard,
    threads: Threads,
    stop: watch::Sender<bool>,
    doors: JoinSet<()>,
    /// Tasks that end with the process and not before.
    helpers: JoinSet<()>,
    certificates: Option<Arc<Certificates>>,
    addresses: Vec<(&'static str, SocketAddr)>,
    /// Released last.
    data_dir: DataDir,
}

/// Why a broker did not start.
#[derive(Debug)]
pub enum StartError {
    /// The data directory cannot be used.
    DataDir(DataDirError),
    /// The log in it cannot be used.
    Open {
        /// The data directory.
        data_dir: String,
        /// Why.
        source: Box<OpenError>,
    },
    /// A door cannot be opened.
    Bind {
        /// The door.
        door: &'static str,
        /// Its address.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate or key of TLS cannot be used.
    Tls(TlsFileError),
    /// The users of the configuration cannot be made, for this reason.
    Users(String),
    /// The file of definitions cannot be loaded.
    Definitions {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, or what of it was refused.
        problem: String,
    },
    /// The first API key cannot be made.
    Bootstrap(BootstrapError),
    /// The system makes no thread.
    Thread(io::Error),
}

impl Server {
    /// Recovers what the data directory holds and opens the doors. Needs a tokio runtime.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(config: Arc<Config>) -> Result<Self, StartError> {
        // First what fails fast: an address in use should not wait for recovery.
        let files = TlsFiles::of(&config);
        let certificates = files.map(Certificates::load).transpose();
        let certificates = certificates.map_err(StartError::Tls)?;
        let secret = keys::bootstrap_secret(&config).map_err(StartError::Bootstrap)?;
        let sockets = Sockets::bind(&config)?;
        let data_dir = DataDir::open(&config.data_dir).map_err(StartError::DataDir)?;
        let node_key = data_dir.node_key().map_err(StartError::DataDir)?;
        let mut node = recover(&config, &data_dir)?;
        let secret = secret.as_ref();
        let authentication = keys::prepare(config.auth_enabled, secret, &mut node);
        let authentication = authentication.map_err(StartError::Bootstrap)?;
        if !users::seed(&mut node) {
            return Err(StartError::Bootstrap(BootstrapError::Storage));
        }
        let clock = Clock::start(node.clock_floor());
        let limits = settings::inbox(&config);
        let scripts = settings::scripts(&config);
        let shard = Shard::start(node, clock, limits, scripts);
        let (shard, threads) = shard.map_err(StartError::Thread)?;
        let (stop, _) = watch::channel(false);
        let mut server = Self {
            shard,
            threads,
            stop,
            doors: JoinSet::new(),
            helpers: JoinSet::new(),
            certificates,
            addresses: Vec::new(),
            data_dir,
        };
        if let Some(certificates) = server.certificates.clone() {
            let watching = certificates.watch(config.tls_reload_interval);
            server.helpers.spawn(watching);
        }
        let crier = server.shard.crier().clone();
        let calling = crier.run(server.shard.clone(), server.stop.subscribe());
        server.helpers.spawn(calling);
        let disk = server.watch_disk(&config).map_err(StartError::DataDir)?;
        server.helpers.spawn(freed_memory::give_back());
        let (asker, mailbox) = Asker::connect(&server.shard);
        server.helpers.spawn(asker.clone().serve(mailbox));
        let rules = settings::logins(&config, authentication);
        let (rehash, hashes) = mpsc::channel(users::REHASHES_MAX);
        server
            .helpers
            .spawn(users::write_hashes(hashes, asker.clone()));
        let principals = server.shard.principals();
        let authenticator = Authenticator::new(principals, clock, rules, rehash);
        load_objects(&config, (&asker, &authenticator)).await?;
        let inside = Inside {
            clock,
            authentication,
            authenticator: Arc::new(authenticator),
            asker,
            node_key: Arc::new(node_key),
            disk,
        };
        server.open(config, inside, sockets);
        Ok(server)
    }

    fn watch_disk(&mut self, config: &Config) -> Result<Arc<RealDisk>, DataDirError> {
        let disk = Arc::new(self.data_dir.shard()?);
        let watched = Arc::clone(&disk);
        let free = move || watched.free_bytes();
        let alarms = self.shard.alarms().clone();
        let least = settings::disk_alarm(config);
        let watching = alarms::watch_disk(free, (least, alarms::DISK_EVERY), alarms);
        self.helpers.spawn(watching);
        Ok(disk)
    }

    fn open(&mut self, config: Arc<Config>, inside: Inside, sockets: Sockets) {
        let Inside {
            clock,
            authentication,
            authenticator,
            asker,
            node_key,
            disk,
        } = inside;
        let audit = Arc::new(Audit::default());
        let commons = door::Commons {
            shard: self.shard.clone(),
            clock,
            frame_timeout: config.limits_frame_timeout,
            memory: door::Memory::new(settings::usize_of(config.limits_connections_memory)),
            authenticator: Arc::clone(&authenticator),
            audit: Arc::clone(&audit),
        };
        let connections = Tally::new(settings::count(config.limits_connections_max));
        let places = (&connections, "limits.connections_max");
        let of = |sockets| (sockets, places, &commons);
        let [fila, amqp, firemq, amaquet, http] = sockets.by_door();
        self.listen_all(&config, of(fila), |socket| door::Fila {
            config: Arc::new(settings::session(
                &config,
                socket.addr.to_string(),
                authentication,
            )),
        });
        let session = Arc::new(settings::amqp(&config));
        self.listen_all(&config, of(amqp), |_| door::Amqp {
            config: Arc::clone(&session),
            certificate_name: config.auth_certificate_name,
        });
        let fire = Arc::new(settings::fire(&config));
        self.listen_all(&config, of(firemq), |_| door::Fire {
            config: Arc::clone(&fire),
            certificate_name: config.auth_certificate_name,
        });
        let facts = Arc::new(door::Facts::new(clock, &connections));
        let session = settings::amaquet(&config, authentication, (node_key, facts));
        let session = Arc::new(session);
        let patient = commons.with_frame_timeout(settings::amaquet_frame_timeout(&config));
        self.listen_all(&config, (amaquet, places, &patient), |_| door::Amaquet {
            config: Arc::clone(&session),
        });
        let over_web = (!config.no_firemq_ws).then(|| http::Fire {
            limits: settings::web_messages(&config),
            hosts: config.http_hosts.clone(),
            origins: config.firemq_ws_origins.clone(),
            config: fire,
            commons,
            places: Arc::clone(&connections),
        });
        let shard = self.shard.clone();
        let door = |places, listeners| http::Door {
            principals: shard.principals(),
            authenticator,
            shard,
            asker,
            clock,
            config: Arc::clone(&config),
            authentication,
            audit,
            fila: connections,
            connections: places,
            listeners,
            disk,
        };
        self.open_http(&config, http, door, over_web);
    }

    fn open_http(
        &mut self,
        config: &Config,
        sockets: SocketPair,
        door: impl FnOnce(Arc<Tally>, Vec<http::Listener>) -> http::Door,
        fire: Option<http::Fire>,
    ) {
        if sockets.iter().all(Option::is_none) {
            return;
        }
        let places = Tally::new(HTTP_CONNECTIONS_MAX);
        let http = sockets.iter().flatten().map(|it| (it.door, it.addr));
        let all = self.addresses.iter().copied().chain(http);
        let listeners = all.map(|(door, addr)| http::Listener { door, addr });
        let door = door(Arc::clone(&places), listeners.collect());
        let http = Arc::new(http::Server::new(door, fire));
        for socket in sockets.into_iter().flatten() {
            let places = (Arc::clone(&places), "256 connections");
            self.listen(config, socket, places, Arc::clone(&http));
        }
    }

    /// Opens the sockets of one protocol, with and without TLS.
    fn listen_all<P: door::Protocol>(
        &mut self,
        config: &Config,
        (sockets, places, commons): (SocketPair, (&Arc<Tally>, &'static str), &door::Commons),
        protocol: impl Fn(&Socket) -> P,
    ) {
        let (places, option) = places;
        for socket in sockets.into_iter().flatten() {
            let door = Arc::new(commons.door(protocol(&socket)));
            self.listen(config, socket, (Arc::clone(places), option), door);
        }
    }

    fn listen<S: Service>(
        &mut self,
        config: &Config,
        socket: Socket,
        (places, places_option): (Arc<Tally>, &'static str),
        service: Arc<S>,
    ) {
        let tls = self.certificates.clone().filter(|_| socket.tls);
        let door = listen::Door {
            name: socket.door,
            places,
            places_option,
            tls,
            handshake_timeout: config.limits_handshake_timeout,
        };
        let listening = Listening::new(door, service, socket.listener);
        self.doors
            .spawn(listening.run(self.stop.subscribe(), GRACE));
        self.addresses.push((socket.door, socket.addr));
    }

    /// Whether any door uses TLS.
    #[must_use]
    pub const fn uses_tls(&self) -> bool {
        self.certificates.is_some()
    }

    /// Reads the files of TLS, if any door uses it, again and uses what they hold for new
    /// connections. Happens soon, and is logged; a file that cannot be used leaves the certificate
    /// of before.
    pub fn reload_certificates(&self) {
        if let Some(certificates) = &self.certificates {
            certificates.reload();
        }
    }

    /// The open doors by name, with the addresses they listen on.
    #[must_use]
    pub fn addresses(&self) -> &[(&'static str, SocketAddr)] {
        &self.addresses
    }

    /// Stops: accepts no more, lets connections finish what is under way, makes everything durable.
    /// Takes at most about nine seconds. False when it gave up before all was done; then what was
    /// not confirmed may be lost, and nothing else.
    pub async fn stop(mut self) -> bool {
        self.stop.send_replace(true);
        while self.doors.join_next().await.is_some() {}
        self.helpers.shutdown().await;
        self.shard.stop();
        let threads = self.threads;
        let joined = tokio::task::spawn_blocking(move || threads.join());
        let finished = timeout(SYNC_GRACE, joined).await.is_ok();
        drop(self.data_dir);
        finished
    }
}

/// Makes what the configuration says is there from the start.
async fn load_objects(config: &Config, by: (&Asker, &Authenticator)) -> Result<(), StartError> {
    let made = definitions::make_users(&config.users, by).await;
    made.map_err(StartError::Users)?;
    let Some(path) = &config.load_definitions else {
        return Ok(());
    };
    let loaded = definitions::load_file(path, by).await;
    loaded.map_err(|problem| StartError::Definitions {
        path: path.clone(),
        problem,
    })
}

/// Returns once the broker is to stop; at once when that was said before.
pub(crate) async fn is_set(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is the same.
    drop(stop.wait_for(|stop| *stop).await);
}

/// What doors need beside their sockets.
struct Inside {
    clock: Clock,
    authentication: Authentication,
    authenticator: Arc<Authenticator>,
    asker: Asker,
    node_key: Arc<NodeKey>,
    disk: Arc<RealDisk>,
}

fn recover(config: &Config, data_dir: &DataDir) -> Result<Node<RealDisk>, StartError> {
    let disk = data_dir.shard().map_err(StartError::DataDir)?;
    let settings = settings::node(config, data_dir.log_id());
    Node::open_with_progress(Arc::new(disk), settings, wall_now(), &mut |progress| {
        tracing::debug!(
            records = progress.records,
            bytes = progress.bytes,
            "recovering"
        );
    })
    .map_err(|source| StartError::Open {
        data_dir: config.data_dir.display().to_string(),
        source: Box::new(source),
    })
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataDir(error) => error.fmt(f),
            Self::Open { data_dir, source } => {
                write!(f, "cannot recover the data directory {data_dir}: {source}")
            }
            Self::Bind { door, addr, source } => {
                let option = door.replace(' ', "-");
                write!(f, "cannot listen on {addr} (option --{option}): {source}")?;
                if source.kind() == io::ErrorKind::AddrInUse {
                    write!(
                        f,
                        "; another process has this port: stop it, choose another address, or \
                         close the door with --no-{option}"
                    )?;
                }
                Ok(())
            }
            Self::Tls(error) => error.fmt(f),
            Self::Users(problem) => write!(f, "cannot make [[users]]: {problem}"),
            Self::Definitions { path, problem } => {
                let path = path.display();
                write!(f, "cannot load {path} (load_definitions): {problem}")
            }
            Self::Bootstrap(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::DataDir(error) => Some(error),
            Self::Tls(error) => Some(error),
            Self::Bootstrap(error) => Some(error),
            Self::Open { source, .. } => Some(source),
            Self::Bind { source, .. } | Self::Thread(source) => Some(source),
            Self::Users(_) | Self::Definitions { .. } => None,
        }
    }
}
