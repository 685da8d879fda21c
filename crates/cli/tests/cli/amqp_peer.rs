//! A client of AMQP that says what it is told to, and shows what it is answered.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use tanda_wire::amqp::{
    LongStr, Method, ShortStr, Split, Table, TableWriter, Value, channel, connection, encode,
    queue, split_frame,
};

const FRAME_MAX: u32 = 131_072;

/// See the module.
pub(crate) struct AmqpPeer {
    socket: TcpStream,
    input: Vec<u8>,
}

pub(crate) fn short(text: &str) -> ShortStr<'_> {
    ShortStr::new(text.as_bytes()).unwrap()
}

impl AmqpPeer {
    /// Logs in and opens the virtual host `/`; what the broker closed with when it does not let
    /// this user in.
    pub(crate) fn open(addr: &str, user: &str, password: &str) -> Result<Self, String> {
        Self::open_in(addr, (user, password), "/")
    }

    /// The same for another virtual host.
    pub(crate) fn open_in(
        addr: &str,
        (user, password): (&str, &str),
        vhost: &str,
    ) -> Result<Self, String> {
        let mut peer = Self {
            socket: TcpStream::connect(addr).unwrap(),
            input: Vec::new(),
        };
        let timeout = Some(Duration::from_secs(60));
        peer.socket.set_read_timeout(timeout).unwrap();
        peer.socket.write_all(b"AMQP\0\0\x09\x01").unwrap();
        peer.expect("Start(");
        let mut properties = Vec::new();
        TableWriter::new(&mut properties).table(short("capabilities"), |table| {
            table.value(short("authentication_failure_close"), &Value::Bool(true));
        });
        let response = format!("\0{user}\0{password}");
        peer.say(
            0,
            connection::StartOk {
                client_properties: Table::new(&properties).unwrap(),
                mechanism: short("PLAIN"),
                response: LongStr::new(response.as_bytes()).unwrap(),
                locale: short("en_US"),
            },
        );
        let tune = peer.next();
        if !tune.contains("Tune(") {
            return Err(tune);
        }
        peer.say(
            0,
            connection::TuneOk {
                channel_max: 2047,
                frame_max: FRAME_MAX,
                heartbeat: 0,
            },
        );
        peer.say(
            0,
            connection::Open {
                virtual_host: short(vhost),
            },
        );
        let opened = peer.next();
        if !opened.contains("OpenOk") {
            return Err(opened);
        }
        peer.open_channel();
        Ok(peer)
    }

    fn open_channel(&mut self) {
        self.say(1, channel::Open {});
        self.expect("OpenOk");
    }

    pub(crate) fn say<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        let mut out = Vec::new();
        encode::write_any_method(&mut out, channel, &method.into());
        self.socket.write_all(&out).unwrap();
    }

    /// The next method, as text; `gone` at the end of the connection.
    pub(crate) fn next(&mut self) -> String {
        loop {
            if let Split::Frame(frame) = split_frame(&self.input, FRAME_MAX).unwrap() {
                let method = Method::decode(frame.payload);
                let text = format!("{} {:?}", frame.channel, method.unwrap());
                let consumed = frame.consumed();
                self.input.drain(..consumed);
                return text;
            }
            let mut buffer = [0; 4096];
            match self.socket.read(&mut buffer) {
                Ok(0) => return "gone".to_owned(),
                Ok(count) => self.input.extend(buffer.iter().take(count)),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return "gone".to_owned();
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn expect(&mut self, what: &str) {
        let next = self.next();
        assert!(next.contains(what), "{next} is not {what}");
    }

    /// Declares a queue. When that is refused: what the channel is closed with; it is opened again.
    pub(crate) fn declare(&mut self, name: &str) -> Result<(), String> {
        self.say(
            1,
            queue::Declare {
                queue: short(name),
                ..queue::Declare::default()
            },
        );
        let answer = self.next();
        if answer.contains("DeclareOk") {
            return Ok(());
        }
        self.say(1, channel::CloseOk {});
        self.open_channel();
        Err(answer)
    }
}
