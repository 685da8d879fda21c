//! Options that are each allowed but not together.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{Authenticate, ClientAuth, Config};

/// Where the Fila door with TLS is when its certificate is given and no address.
const FILA_TLS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5556);
/// The same of AMQP.
const AMQP_TLS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5671);
/// The same of FireMQ.
const FIREMQ_TLS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5674);
/// The same of Amaquet.
const AMAQUET_TLS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7273);
/// The same of HTTP.
const HTTP_TLS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 15671);

/// A door that is to be opened.
#[derive(Clone, Copy, Debug)]
struct DoorAddress {
    /// Its option.
    name: &'static str,
    tls: bool,
    addr: SocketAddr,
}

impl Config {
    /// What contradicts itself, each with what to do.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let doors = self.doors();
        problems.extend(doors.iter().filter_map(|door| self.exposed(*door)));
        problems.extend(same_address(&doors));
        if doors.is_empty() {
            problems.push(
                "no_fila, no_amqp, no_firemq, no_amaquet and no_http are all set: no door would be \
                 open"
                    .to_owned(),
            );
        }
        problems.extend(self.incomplete_tls());
        problems.extend(self.contradicting_keys());
        if self.limits_max_message > self.limits_max_body {
            problems.push(format!(
                "limits.max_message ({}) is above limits.max_body ({}): such a message could never \
                 arrive",
                self.limits_max_message, self.limits_max_body
            ));
        }
        if self.limits_max_frame > self.limits_max_body {
            problems.push(format!(
                "limits.max_frame ({}) is above limits.max_body ({}): a frame is the smallest body",
                self.limits_max_frame, self.limits_max_body
            ));
        }
        if self.amaquet_max_payload > self.amaquet_payload_reservation {
            problems.push(format!(
                "amaquet.limits.max_payload ({}) is above amaquet.limits.payload_reservation ({}): \
                 such a payload could never be taken",
                self.amaquet_max_payload, self.amaquet_payload_reservation
            ));
        }
        if self.queue_backoff_initial > self.queue_backoff_max {
            problems.push(format!(
                "queue.backoff_initial ({:?}) is above queue.backoff_max ({:?})",
                self.queue_backoff_initial, self.queue_backoff_max
            ));
        }
        problems
    }

    /// The address of the Fila door with TLS, if it is to be opened.
    pub(crate) fn fila_tls_address(&self) -> Option<SocketAddr> {
        self.tls_address(self.no_fila_tls, self.fila_tls, FILA_TLS)
    }

    /// The address of the AMQP door with TLS, if it is to be opened.
    pub(crate) fn amqp_tls_address(&self) -> Option<SocketAddr> {
        self.tls_address(self.no_amqp_tls, self.amqp_tls, AMQP_TLS)
    }

    /// The address of the FireMQ door with TLS, if it is to be opened.
    pub(crate) fn firemq_tls_address(&self) -> Option<SocketAddr> {
        self.tls_address(self.no_firemq_tls, self.firemq_tls, FIREMQ_TLS)
    }

    /// The address of the Amaquet door with TLS, if it is to be opened.
    pub(crate) fn amaquet_tls_address(&self) -> Option<SocketAddr> {
        self.tls_address(self.no_amaquet_tls, self.amaquet_tls, AMAQUET_TLS)
    }

    /// The address of the HTTP door with TLS, if it is to be opened.
    pub(crate) fn http_tls_address(&self) -> Option<SocketAddr> {
        self.tls_address(self.no_http_tls, self.http_tls, HTTP_TLS)
    }

    fn tls_address(
        &self,
        closed: bool,
        addr: Option<SocketAddr>,
        default: SocketAddr,
    ) -> Option<SocketAddr> {
        let wanted = self.tls_certificate.is_some() && !closed;
        wanted.then(|| addr.unwrap_or(default))
    }

    /// The doors that are to be opened.
    fn doors(&self) -> Vec<DoorAddress> {
        let door =
            |name, tls, addr: Option<SocketAddr>| addr.map(|addr| DoorAddress { name, tls, addr });
        let doors = [
            door("fila", false, (!self.no_fila).then_some(self.fila)),
            door("fila_tls", true, self.fila_tls_address()),
            door("amqp", false, (!self.no_amqp).then_some(self.amqp)),
            door("amqp_tls", true, self.amqp_tls_address()),
            door("firemq", false, (!self.no_firemq).then_some(self.firemq)),
            door("firemq_tls", true, self.firemq_tls_address()),
            door("amaquet", false, (!self.no_amaquet).then_some(self.amaquet)),
            door("amaquet_tls", true, self.amaquet_tls_address()),
            door("http", false, (!self.no_http).then_some(self.http)),
            door("http_tls", true, self.http_tls_address()),
        ];
        doors.into_iter().flatten().collect()
    }

    fn exposed(&self, door: DoorAddress) -> Option<String> {
        let DoorAddress { name, tls, addr } = door;
        // With TLS a certificate is proof, if nobody gets in without.
        let required = self.tls_client_auth == ClientAuth::Required;
        let certified = tls && required && self.tls_client_ca.is_some();
        // Who comes here has to log in, and guest may not come from elsewhere.
        let has_logins = name.starts_with("amqp") || name.starts_with("firemq");
        let logs_in = has_logins && self.is_guest_at_home();
        let proved = certified || logs_in || self.wants_keys();
        if addr.ip().is_loopback() || self.allow_unauthenticated || proved {
            return None;
        }
        Some(format!(
            "{name} = \"{addr}\" can be reached from other machines, and nobody has to prove who \
             they are: set auth.enabled or auth.bootstrap_apikey, use a loopback address, or say \
             --allow-unauthenticated"
        ))
    }

    /// Whether the password that everybody knows lets nobody in from other machines.
    fn is_guest_at_home(&self) -> bool {
        let is_bound = self.auth_loopback_users.iter().any(|name| name == "guest");
        is_bound || self.auth_guest == Authenticate::False
    }

    /// Whether clients must show a key, whatever the data directory holds.
    fn wants_keys(&self) -> bool {
        match self.auth_enabled {
            Authenticate::True => true,
            Authenticate::False => false,
            Authenticate::Auto => self.has_bootstrap_key(),
        }
    }

    const fn has_bootstrap_key(&self) -> bool {
        self.auth_bootstrap_apikey.is_some() || self.auth_bootstrap_apikey_file.is_some()
    }

    fn contradicting_keys(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.auth_enabled == Authenticate::False && self.has_bootstrap_key() {
            problems.push(
                "a bootstrap key is set but auth.enabled is false: nobody would have to show it"
                    .to_owned(),
            );
        }
        if self.auth_bootstrap_apikey.is_some() && self.auth_bootstrap_apikey_file.is_some() {
            problems.push(
                "auth.bootstrap_apikey and auth.bootstrap_apikey_file are both set: remove one"
                    .to_owned(),
            );
        }
        problems
    }

    /// Options of TLS that need others.
    fn incomplete_tls(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let certificate = self.tls_certificate.is_some();
        let needs = [
            ("tls.key", self.tls_key.is_some()),
            ("tls.client_ca", self.tls_client_ca.is_some()),
            ("fila_tls", self.fila_tls.is_some()),
            ("amqp_tls", self.amqp_tls.is_some()),
            ("firemq_tls", self.firemq_tls.is_some()),
            ("amaquet_tls", self.amaquet_tls.is_some()),
            ("http_tls", self.http_tls.is_some()),
        ];
        for (option, is_set) in needs {
            if is_set && !certificate {
                problems.push(format!("{option} is set but tls.certificate is not"));
            }
        }
        if certificate && self.tls_key.is_none() {
            problems.push("tls.certificate is set but tls.key is not".to_owned());
        }
        if certificate && !self.doors().iter().any(|door| door.tls) {
            problems.push(
                "tls.certificate is set but no door uses it: remove no_fila_tls, no_amqp_tls, \
                 no_firemq_tls, no_amaquet_tls or no_http_tls"
                    .to_owned(),
            );
        }
        problems
    }
}

fn same_address(doors: &[DoorAddress]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, door) in doors.iter().enumerate() {
        let others = doors.iter().skip(index + 1);
        let same = others.filter(|other| other.addr == door.addr && door.addr.port() != 0);
        problems.extend(same.map(|other| {
            let (name, other, addr) = (door.name, other.name, door.addr);
            format!("{name} and {other} are both {addr}: give one of them another port")
        }));
    }
    problems
}
