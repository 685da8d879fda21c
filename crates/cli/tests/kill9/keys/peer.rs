//! One connection that speaks Amaquet, one command at a time.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// See the module.
pub(crate) struct Peer {
    stream: TcpStream,
    last_id: u64,
}

/// What became of a command.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was done; its result.
    Done(Value),
    /// It was refused with this code.
    Refused(String),
    /// The connection ended before the answer: nobody knows.
    Unknown,
}

impl Peer {
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, last_id: 0 }
    }

    pub(crate) async fn run(&mut self, name: &str, mut arguments: Value) -> Outcome {
        arguments["command"] = json!(name);
        match self.exchange(&arguments.to_string()).await {
            Err(_ended) => Outcome::Unknown,
            Ok(mut answer) if answer["ok"] == true => Outcome::Done(answer["result"].take()),
            Ok(answer) => Outcome::Refused(answer["error"]["code"].as_str().unwrap().to_owned()),
        }
    }

    async fn exchange(&mut self, payload: &str) -> std::io::Result<Value> {
        self.last_id += 1;
        let mut frame = b"AMQT\x01\x01\0\0\0\x01\0\0".to_vec();
        frame.extend(self.last_id.to_be_bytes());
        frame.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
        frame.extend(payload.as_bytes());
        self.stream.write_all(&frame).await?;
        let mut head = [0; 24];
        self.stream.read_exact(&mut head).await?;
        assert_eq!(head[12..20], self.last_id.to_be_bytes());
        let length = u32::from_be_bytes(head[20..].try_into().unwrap());
        let mut answer = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut answer).await?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }
}
