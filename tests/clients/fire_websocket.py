"""What is special about FireMQ over WebSocket: `fire_websocket.py URL CHECK`."""

import base64
import os
import socket
import struct
import sys
import urllib.parse

import msgpack
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as connect_websocket

from fire import OPS, PATIENCE, Fire, FireError

URL = sys.argv[1]


def frame(op, header, payload=b""):
    packed = msgpack.packb(header)
    return struct.pack(">BI", OPS[op], len(packed)) + packed + payload


def hello(**fields):
    auth = {"mech": "plain", "user": "guest", "pass": "guest"}
    return frame("hello", {"ver": 1, "auth": auth, "heartbeat": 0, **fields})


def dial(**options):
    return connect_websocket(URL, max_size=None, proxy=None, **options)


def header_of(message):
    length = struct.unpack(">I", message[1:5])[0]
    return msgpack.unpackb(message[5 : 5 + length])


def close_code(web):
    """Reads to the end."""
    try:
        while True:
            web.recv(PATIENCE)
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


def fragments_and_pings():
    web = dial()
    # A hello in four pieces, with a ping of its own between two messages.
    whole = hello()
    web.send([whole[:1], whole[1:7], b"", whole[7:]])
    assert web.recv(PATIENCE)[0] == OPS["welcome"]
    assert web.ping(b"are you there").wait(PATIENCE), "no pong"
    body = bytes(range(256)) * 1000
    declare = frame("declare_queue", {"rid": 1, "name": "pieces", "durable": True})
    publish = frame("publish", {"seq": 1, "key": "pieces"}, body)
    web.send(declare)
    web.send(publish[at : at + 1000] for at in range(0, len(publish), 1000))
    web.send(frame("get", {"rid": 2, "queue": "pieces", "no_ack": True}))
    found = [web.recv(PATIENCE) for _ in range(3)]
    assert sorted(message[0] for message in found) == [OPS["ok"], OPS["confirm"], OPS["get_ok"]]
    got = next(message for message in found if message[0] == OPS["get_ok"])
    assert got.endswith(body)
    # The goodbye of WebSocket without one of FireMQ.
    web.close(1000)
    assert web.close_code == 1000


def what_is_no_frame_is_refused():
    web = dial()
    web.send("text")
    assert close_code(web) == 1003
    web = dial()
    web.send(hello())
    assert web.recv(PATIENCE)[0] == OPS["welcome"]
    web.send("text")
    assert close_code(web) == 1003
    # An empty message is no frame.
    web = dial()
    web.send(b"")
    error = web.recv(PATIENCE)
    assert error[0] == OPS["error"] and header_of(error)["code"] == 501
    assert close_code(web) == 1000
    # Too large: before welcome, and after it, in one piece and in many.
    web = dial()
    web.send(hello() + bytes(65_536))
    error = web.recv(PATIENCE)
    assert error[0] == OPS["error"] and header_of(error)["code"] == 501, error
    assert header_of(error)["fatal"] is True
    assert close_code(web) == 1009
    web = dial()
    web.send(hello())
    limit = header_of(web.recv(PATIENCE))["max_frame"]
    piece = bytes(1 << 20)
    try:
        web.send(piece for _ in range(limit // len(piece) + 1))
    except ConnectionClosed:
        pass
    assert close_code(web) == 1009


def raw():
    """A socket after the handshake of WebSocket."""
    parts = urllib.parse.urlsplit(URL)
    plain = socket.create_connection((parts.hostname, parts.port), PATIENCE)
    key = base64.b64encode(os.urandom(16)).decode()
    plain.sendall(
        f"GET /fire HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
        f"Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = plain.recv(1)
        assert part, head
        head += part
    assert head.startswith(b"HTTP/1.1 101 "), head
    return plain


def masked(opcode, payload, first=0x80):
    mask = b"\x01\x02\x03\x04"
    body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return struct.pack(">BBH", first | opcode, 0x80 | 126, len(payload)) + mask + body


def message(plain):
    """The next message, which has no mask and is no larger than some kilobytes."""
    first, length = plain.recv(2)
    assert first == 0x82 and length <= 126, (first, length)
    if length == 126:
        length = struct.unpack(">H", plain.recv(2))[0]
    return plain.recv(length, socket.MSG_WAITALL)


def close_of(plain):
    """The code of the close frame that ends the stream."""
    stream = b""
    while part := plain.recv(4096):
        stream += part
    at = stream.rindex(b"\x88\x02")
    return struct.unpack(">H", stream[at + 2 : at + 4])[0]


def broken_frames_end_the_connection():
    for bad in (
        b"\x82\x01x",  # no mask
        masked(3, b"?"),  # an opcode that is reserved
        masked(2, b"?", first=0xC0),  # compressed, which was not agreed on
        masked(0, b"?"),  # a continuation of nothing
        masked(2, b"?", first=0) + masked(2, b"?"),  # a message within a message
        masked(9, b"x" * 126),  # a ping that is too large
        masked(9, b"x", first=0),  # a ping in pieces
    ):
        plain = raw()
        plain.sendall(bad)
        assert close_of(plain) == 1002, bad
    plain = raw()
    plain.sendall(b"\x82\xff" + struct.pack(">Q", 2**62) + b"mask")
    assert close_of(plain) == 1009
    # All that was sent before the end of the stream counts.
    plain = raw()
    declare = frame("declare_queue", {"rid": 1, "name": "before the end", "durable": True})
    plain.sendall(masked(2, hello()) + masked(2, declare))
    plain.shutdown(socket.SHUT_WR)
    while plain.recv(4096):
        pass
    fire = Fire(URL)
    assert fire.count("before the end") == 0
    # A flood of pings whose answers nobody reads does not keep others out.
    plain = raw()
    plain.setblocking(False)
    try:
        for _ in range(200_000):
            plain.send(masked(9, b"x" * 125))
    except BlockingIOError:
        pass
    assert fire.count("before the end") == 0
    fire.close()


def a_goodbye_right_behind_a_request_is_seen():
    plain = raw()
    plain.sendall(masked(2, hello()))
    assert message(plain)[0] == OPS["welcome"]
    declare = frame("declare_queue", {"rid": 1, "name": "last", "durable": True})
    plain.sendall(masked(2, declare) + masked(8, struct.pack(">H", 1000)))
    answers = b""
    while part := plain.recv(4096):
        answers += part
    assert answers.endswith(b"\x88\x02" + struct.pack(">H", 1000)), answers
    fire = Fire(URL)
    assert fire.count("last") == 0
    fire.close()


def a_slow_reader_holds_up_nobody():
    body = bytes(100_000)
    other = Fire(URL)
    other.queue("heavy")
    slow = raw()
    slow.sendall(masked(2, hello()))
    assert message(slow)[0] == OPS["welcome"]
    header = {"rid": 1, "sub": 1, "queue": "heavy", "credit": 100_000}
    slow.sendall(masked(2, frame("subscribe", header)))
    for _ in range(300):
        other.publish("", "heavy", body)
    assert other.confirmed() == {}
    # A part of them is on its way to the one that does not read; the rest waits for anybody.
    left = other.count("heavy")
    assert left > 100, left
    slow.close()
    other.subscribe(1, "heavy", 300)
    for _ in range(300):
        assert other.next().payload == body
    other.close()


def pages_of_others_need_a_user():
    parts = urllib.parse.urlsplit(URL)
    local = [None, f"http://{parts.netloc}", "http://localhost:3000", "http://127.0.0.1"]
    for origin in [*local, "https://shop.example"]:
        Fire(URL, origin=origin).close()
    for origin in ("null", "https://evil.example", "http://localhost.evil.example"):
        try:
            Fire(URL, origin=origin)
        except FireError as error:
            assert error.code == 403 and error.fatal
        else:
            raise AssertionError(f"guest was let in from {origin}")
    # Called by a name that anybody may have pointed here.
    try:
        connect_websocket(f"ws://evil.example:{parts.port}/fire", sock=tcp(parts), proxy=None)
    except InvalidStatus as refused:
        assert refused.response.status_code == 403, refused
    else:
        raise AssertionError("called by a foreign name")


def tcp(parts):
    return socket.create_connection((parts.hostname, parts.port), PATIENCE)


def the_url_names_the_virtual_host():
    Fire(URL + "?vhost=%2F").close()
    for query, wanted in (("?vhost=none", ""), ("?vhost=%2F", "other")):
        try:
            Fire(URL + query, hello={"vhost": wanted})
        except FireError as error:
            assert error.code == 530, error
        else:
            raise AssertionError("a virtual host that is not there was opened")
    for bad in ("?vhost=%zz", "?vhost=a&vhost=b"):
        try:
            Fire(URL + bad)
        except InvalidStatus as refused:
            assert refused.response.status_code == 400, refused
        except ValueError:
            pass
        else:
            raise AssertionError(bad)


def other_requests_are_told_what_to_do():
    parts = urllib.parse.urlsplit(URL)
    for request, status in (
        ("GET /fire HTTP/1.1\r\nHost: localhost", 426),
        ("POST /fire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0", 426),
        ("GET /fires HTTP/1.1\r\nHost: localhost", 404),
    ):
        plain = tcp(parts)
        plain.sendall(f"{request}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := plain.recv(4096):
            answer += part
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer


globals()[sys.argv[2]]()
