//! API keys, as Fila makes them.

#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    reason = "helpers of tests; each test file uses a part, so `expect` would fail in some"
)]

use crate::support::{Frame, HANDSHAKE, HANDSHAKE_OK, Peer, TestServer, string};

const CREATE_KEY: u8 = 0xED;
pub const REVOKE_KEY: u8 = 0xEB;
const SET_ACL: u8 = 0xE7;
const OK: u8 = 0;

/// The body of a `Handshake`.
pub fn handshake(key: Option<&str>) -> Vec<u8> {
    let mut body = vec![0, 1];
    match key {
        None => body.push(0),
        Some(key) => {
            body.push(1);
            body.extend(string(key));
        }
    }
    body.extend([0, 0, 0, 1]);
    body
}

/// The answer to a request.
pub fn ask(peer: &mut Peer, opcode: u8, body: &[u8]) -> Frame {
    peer.send(opcode, 77, body);
    let answer = peer.answer();
    // Answers of rare requests are numbered downwards.
    let expected = if opcode < 0x80 {
        opcode + 1
    } else {
        opcode - 1
    };
    assert_eq!((answer.opcode, answer.id), (expected, 77), "{answer:?}");
    answer
}

/// A key that was made.
pub struct Key {
    pub id: String,
    pub secret: String,
}

/// Makes one that may nothing, or everything.
pub fn create_key(root: &mut Peer, name: &str, expires_at_ms: u64, superadmin: bool) -> Key {
    let mut body = string(name);
    body.extend(expires_at_ms.to_be_bytes());
    body.push(u8::from(superadmin));
    let answer = ask(root, CREATE_KEY, &body);
    assert_eq!(answer.body[0], OK, "{answer:?}");
    let mut texts = Vec::new();
    let mut at = 1;
    for _ in 0..2 {
        let len = usize::from(u16::from_be_bytes([answer.body[at], answer.body[at + 1]]));
        let text = answer.body[at + 2..at + 2 + len].to_vec();
        texts.push(String::from_utf8(text).unwrap());
        at += 2 + len;
    }
    let secret = texts.pop().unwrap();
    assert!(
        secret.starts_with("tanda_") && secret.len() == 49,
        "{secret}"
    );
    Key {
        id: texts.pop().unwrap(),
        secret,
    }
}

/// Gives a key these kinds of access, by pattern, and takes the others.
pub fn set_acl(root: &mut Peer, id: &str, grants: &[(&str, &str)]) {
    let mut body = string(id);
    body.extend(u32::try_from(grants.len()).unwrap().to_be_bytes());
    for (kind, pattern) in grants {
        body.extend(string(kind));
        body.extend(string(pattern));
    }
    assert_eq!(ask(root, SET_ACL, &body).body, [OK]);
}

/// Ends a key.
pub fn revoke(root: &mut Peer, id: &str) {
    assert_eq!(ask(root, REVOKE_KEY, &string(id)).body, [OK]);
}

/// A connection that shows this key.
pub fn enter(server: &TestServer, key: &str) -> Peer {
    let mut peer = server.dial();
    peer.send(HANDSHAKE, 0, &handshake(Some(key)));
    let answer = peer.receive();
    assert_eq!(answer.opcode, HANDSHAKE_OK, "{answer:?}");
    peer
}
