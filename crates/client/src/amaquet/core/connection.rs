//! One connection.

use std::collections::{HashMap, VecDeque};

use bytes::{Buf, Bytes, BytesMut};
use tanda_wire::amaquet::envelope::{self, Answer};
use tanda_wire::amaquet::frame::{
    Header, PAYLOAD_BYTES_HARD_MAX, PayloadTooLarge, Sender, Split, split_frame, write_frame,
};
use tanda_wire::amaquet::{Kind, Opcode};

use super::event::{Event, ProtocolError};
use super::greeting::{self, GreetingProblem, Hello, Login, NONCE_BYTES};
use crate::amaquet::error::{ConnectError, Refusal};
use crate::outbox::Outbox;

/// The request id of HELLO.
const HELLO_ID: u64 = 1;
/// The request id of AUTH.
const AUTH_ID: u64 = 2;
/// The lowest request id that others may use.
pub(crate) const FIRST_REQUEST_ID: u64 = 3;

/// What connections are opened with.
#[derive(Clone, Default)]
pub(crate) struct ConnectionConfig {
    pub(crate) api_key: Option<String>,
    /// The public key that the node must have.
    pub(crate) server_key: Option<[u8; 32]>,
}

impl std::fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionConfig")
            .field("has_api_key", &self.api_key.is_some())
            .field("server_key", &self.server_key)
            .finish()
    }
}

/// What a connection is made of.
pub(crate) struct NewConnection {
    pub(crate) config: ConnectionConfig,
    /// Random, and not used before.
    pub(crate) nonce: [u8; NONCE_BYTES],
}

#[derive(Debug)]
enum State {
    /// HELLO is sent.
    Greeting {
        nonce: [u8; NONCE_BYTES],
        config: ConnectionConfig,
    },
    /// AUTH is sent.
    Login(Hello),
    Open {
        hello: Hello,
        login: Option<Login>,
    },
    /// The server, or this client, wants no connection.
    Refused,
}

/// A connection; `C` is what is kept for each request until it is answered.
#[derive(Debug)]
pub(crate) struct Connection<C> {
    state: State,
    refused: Option<ConnectError>,
    output: Outbox,
    waiting: HashMap<u64, (Opcode, C)>,
    events: VecDeque<Event<C>>,
    payload_bytes_max: u32,
    is_closed: bool,
}

impl<C> Connection<C> {
    /// One whose greeting waits to be sent.
    pub(crate) fn new(new: NewConnection) -> Self {
        let mut connection = Self {
            state: State::Greeting {
                nonce: new.nonce,
                config: new.config,
            },
            refused: None,
            output: Outbox::default(),
            waiting: HashMap::new(),
            events: VecDeque::new(),
            payload_bytes_max: PAYLOAD_BYTES_HARD_MAX,
            is_closed: false,
        };
        let written = connection.write(Opcode::Hello, HELLO_ID, |out| {
            greeting::write_hello(out, &new.nonce);
        });
        debug_assert!(written.is_ok(), "a few bytes are within every limit");
        connection
    }

    /// Whether requests may be made; the error is why there never will be any.
    pub(crate) fn is_accepted(&mut self) -> Result<bool, ConnectError> {
        match self.refused.take() {
            Some(error) => Err(error),
            None => Ok(matches!(self.state, State::Open { .. })),
        }
    }

    /// What the server said of itself, and of this client.
    pub(crate) const fn greeting(&self) -> Option<(&Hello, Option<&Login>)> {
        match &self.state {
            State::Open { hello, login } => Some((hello, login.as_ref())),
            State::Greeting { .. } | State::Login(_) | State::Refused => None,
        }
    }

    /// The bytes to send.
    pub(crate) fn output(&self) -> &[u8] {
        self.output.unsent()
    }

    /// So many of them were sent.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.output.on_sent(bytes);
    }

    /// Nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// No more requests will be made.
    pub(crate) const fn close(&mut self) {
        self.is_closed = true;
    }

    /// Everything is sent and no more will be.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_closed && self.output().is_empty()
    }

    /// Makes a request.
    ///
    /// # Errors
    /// When it is larger than the server takes; the context comes back.
    pub(crate) fn request(
        &mut self,
        opcode: Opcode,
        request_id: u64,
        context: C,
        write: impl FnOnce(&C, &mut Vec<u8>),
    ) -> Result<(), (C, PayloadTooLarge)> {
        match self.write(opcode, request_id, |out| write(&context, out)) {
            Ok(()) => {
                self.waiting.insert(request_id, (opcode, context));
                Ok(())
            }
            Err(error) => Err((context, error)),
        }
    }

    fn write(
        &mut self,
        opcode: Opcode,
        request_id: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), PayloadTooLarge> {
        let header = Header::request(opcode, request_id);
        write_frame(self.output.buffer(), header, self.payload_bytes_max, write)
    }

    /// The next thing that came.
    pub(crate) fn next_event(&mut self) -> Option<Event<C>> {
        self.events.pop_front()
    }

    /// Whether this request is sent and not answered.
    pub(crate) fn is_waiting(&self, request_id: u64) -> bool {
        self.waiting.contains_key(&request_id)
    }

    /// What was kept for requests without an answer, in the order they were made.
    pub(crate) fn into_unanswered(self) -> Vec<C> {
        let mut waiting: Vec<_> = self.waiting.into_iter().collect();
        waiting.sort_unstable_by_key(|(id, _)| *id);
        waiting.into_iter().map(|(_, (_, it))| it).collect()
    }

    /// Bytes to make room for, so that the frame at the front of `input` is read in one piece.
    pub(crate) fn missing_bytes(input: &[u8]) -> usize {
        match split_frame(input, Sender::Server, PAYLOAD_BYTES_HARD_MAX) {
            Ok(Split::Incomplete { need_bytes, .. }) => need_bytes.saturating_sub(input.len()),
            Ok(Split::Frame(_)) | Err(_) => 0,
        }
    }

    /// Takes all whole frames out of `input`.
    ///
    /// # Errors
    /// When the connection cannot go on.
    pub(crate) fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        loop {
            let split = split_frame(input, Sender::Server, PAYLOAD_BYTES_HARD_MAX);
            let Split::Frame(frame) = split.map_err(ProtocolError::Frame)? else {
                return Ok(());
            };
            let header = frame.header;
            let mut whole = input.split_to(frame.consumed()).freeze();
            whole.advance(tanda_wire::amaquet::frame::HEADER_BYTES);
            match header.kind {
                Kind::Event => self.events.push_back(Event::Told {
                    subscription: header.request_id,
                    payload: whole,
                }),
                Kind::Response | Kind::Request => self.on_response(&header, &whole)?,
            }
        }
    }

    fn on_response(&mut self, header: &Header, payload: &Bytes) -> Result<(), ProtocolError> {
        let request_id = header.request_id;
        let answer = match envelope::read(payload) {
            Some(Answer::Result(json)) => Ok(payload.slice_ref(json.text().as_bytes())),
            Some(Answer::Failure {
                code,
                message,
                retry_after_ms,
            }) => Err(Refusal {
                code,
                message,
                retry_after_ms,
            }),
            None => return Err(ProtocolError::Envelope { request_id }),
        };
        match (&self.state, request_id) {
            (State::Greeting { .. }, HELLO_ID) => self.on_hello(answer),
            (State::Login(_), AUTH_ID) => self.on_login(answer),
            _ => return self.on_answer(header, answer),
        }
        Ok(())
    }

    fn on_answer(
        &mut self,
        header: &Header,
        answer: Result<Bytes, Refusal>,
    ) -> Result<(), ProtocolError> {
        let request_id = header.request_id;
        if let Some((_, context)) = self.waiting.remove(&request_id) {
            self.events.push_back(Event::Answered { context, answer });
            return Ok(());
        }
        match answer {
            Err(refusal) if header.opcode == Opcode::Subscribe => {
                self.events.push_back(Event::Ended {
                    subscription: request_id,
                    refusal,
                });
                Ok(())
            }
            Err(refusal) => Err(ProtocolError::Refused(refusal)),
            Ok(_) => Err(ProtocolError::Unasked {
                kind: header.kind,
                opcode: header.opcode,
                request_id,
            }),
        }
    }

    fn on_hello(&mut self, answer: Result<Bytes, Refusal>) {
        let State::Greeting { nonce, config } = std::mem::replace(&mut self.state, State::Refused)
        else {
            return;
        };
        let greeting = match answer {
            Ok(result) => Hello::read(&result, &nonce, config.server_key.as_ref()),
            Err(refusal) => {
                self.refused = Some(ConnectError::Refused(refusal));
                return;
            }
        };
        let hello = match greeting {
            Ok(hello) => hello,
            Err(problem) => {
                self.refused = Some(distrusted(problem));
                return;
            }
        };
        self.payload_bytes_max = hello.payload_bytes_max;
        match config.api_key {
            Some(api_key) => {
                let written = self.write(Opcode::Auth, AUTH_ID, |out| {
                    greeting::write_auth(out, &api_key);
                });
                match written {
                    Ok(()) => self.state = State::Login(hello),
                    Err(error) => self.refused = Some(ConnectError::TooLarge(error)),
                }
            }
            None if hello.auth_required => self.refused = Some(ConnectError::KeyWanted),
            None => self.state = State::Open { hello, login: None },
        }
    }

    fn on_login(&mut self, answer: Result<Bytes, Refusal>) {
        let State::Login(hello) = std::mem::replace(&mut self.state, State::Refused) else {
            return;
        };
        match answer.map(|result| Login::read(&result)) {
            Ok(Ok(login)) => {
                let login = Some(login);
                self.state = State::Open { hello, login };
            }
            Ok(Err(problem)) => self.refused = Some(distrusted(problem)),
            Err(refusal) => self.refused = Some(ConnectError::Refused(refusal)),
        }
    }
}

fn distrusted(problem: GreetingProblem) -> ConnectError {
    let reason = problem.to_string();
    match problem {
        GreetingProblem::Field(_) => ConnectError::NotAmaquet { reason },
        GreetingProblem::Signature | GreetingProblem::OtherKey => {
            ConnectError::NotGenuine { reason }
        }
    }
}
