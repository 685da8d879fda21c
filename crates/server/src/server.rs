//! A running broker: started, addressed, stopped.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use tanda_node::{Node, OpenError};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{
    clock::{Clock, wall_now},
    config::Config,
    data_dir::{DataDir, DataDirError},
    fila, http, settings,
    shard::{Shard, Threads},
    tally::Tally,
};

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
    asker: Option<JoinHandle<()>>,
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
        /// The door, which is also its option.
        door: &'static str,
        /// Its address.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
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
        let fila = bind("fila", config.no_fila, config.fila).await?;
        let http = bind("http", config.no_http, config.http).await?;
        let data_dir = DataDir::open(&config.data_dir).map_err(StartError::DataDir)?;
        let node = recover(&config, &data_dir)?;
        let clock = Clock::start(node.clock_floor());
        let limits = settings::inbox(&config);
        let (shard, threads) = Shard::start(node, clock, limits).map_err(StartError::Thread)?;
        let (stop, _) = watch::channel(false);
        let mut server = Self {
            shard,
            threads,
            stop,
            doors: JoinSet::new(),
            asker: None,
            addresses: Vec::new(),
            data_dir,
        };
        let connections = Tally::new(settings::count(config.limits_connections_max));
        if let Some((listener, addr)) = fila {
            server.open_fila(&config, clock, listener, addr, &connections);
        }
        if let Some((listener, addr)) = http {
            server.open_http(config, clock, listener, addr, connections);
        }
        Ok(server)
    }

    fn open_fila(
        &mut self,
        config: &Config,
        clock: Clock,
        listener: TcpListener,
        addr: SocketAddr,
        connections: &Arc<Tally>,
    ) {
        let door = fila::Door {
            shard: self.shard.clone(),
            clock,
            session: Arc::new(settings::session(config, addr.to_string())),
            frame_timeout: config.limits_frame_timeout,
            connections: Arc::clone(connections),
        };
        let listening = fila::Listening::new(door, listener);
        self.doors
            .spawn(listening.run(self.stop.subscribe(), GRACE));
        self.addresses.push(("fila", addr));
    }

    fn open_http(
        &mut self,
        config: Arc<Config>,
        clock: Clock,
        listener: TcpListener,
        addr: SocketAddr,
        fila: Arc<Tally>,
    ) {
        let (asker, mailbox) = http::Asker::connect(&self.shard);
        self.asker = Some(tokio::spawn(asker.clone().serve(mailbox)));
        let door = http::Door {
            shard: self.shard.clone(),
            asker,
            clock,
            config,
            fila,
            connections: Tally::new(HTTP_CONNECTIONS_MAX),
        };
        let listening = http::Listening::new(door, listener);
        self.doors
            .spawn(listening.run(self.stop.subscribe(), GRACE));
        self.addresses.push(("http", addr));
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
        if let Some(asker) = self.asker.take() {
            asker.abort();
        }
        self.shard.stop();
        let threads = self.threads;
        let joined = tokio::task::spawn_blocking(move || threads.join());
        let finished = timeout(SYNC_GRACE, joined).await.is_ok();
        drop(self.data_dir);
        finished
    }
}

/// Returns once the broker is to stop; at once when that was said before.
pub(crate) async fn is_set(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is the same.
    drop(stop.wait_for(|stop| *stop).await);
}

async fn bind(
    door: &'static str,
    closed: bool,
    addr: SocketAddr,
) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    if closed {
        return Ok(None);
    }
    let failed = |source| StartError::Bind { door, addr, source };
    let listener = TcpListener::bind(addr).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok(Some((listener, bound)))
}

fn recover(config: &Config, data_dir: &DataDir) -> Result<Node<crate::disk::RealDisk>, StartError> {
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
                write!(f, "cannot listen on {addr} (option --{door}): {source}")?;
                if source.kind() == io::ErrorKind::AddrInUse {
                    write!(
                        f,
                        "; another process has this port: stop it, choose another address, or \
                         close the door with --no-{door}"
                    )?;
                }
                Ok(())
            }
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::DataDir(error) => Some(error),
            Self::Open { source, .. } => Some(source),
            Self::Bind { source, .. } | Self::Thread(source) => Some(source),
        }
    }
}
