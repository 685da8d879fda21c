"""A small FireMQ client, written from the protocol's document alone.

It is strict: whatever the document says of what a server sends is asserted of all that comes.
"""

import collections
import contextlib
import socket
import ssl
import struct
import urllib.parse

import msgpack
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as connect_websocket

PATIENCE = 20

OPS = {
    "hello": 0x01, "welcome": 0x02, "ping": 0x03, "pong": 0x04, "close": 0x05, "ok": 0x06,
    "error": 0x07, "flow": 0x08, "declare_exchange": 0x10, "delete_exchange": 0x11,
    "declare_queue": 0x12, "delete_queue": 0x13, "purge_queue": 0x14, "bind": 0x15,
    "unbind": 0x16, "publish": 0x20, "confirm": 0x21, "return": 0x22, "subscribe": 0x30,
    "unsubscribe": 0x31, "credit": 0x32, "deliver": 0x33, "cancelled": 0x34, "ack": 0x35,
    "nack": 0x36, "get": 0x37, "get_ok": 0x38,
}  # fmt: skip
NAMES = {number: name for name, number in OPS.items()}
WITH_PAYLOAD = {"publish", "return", "deliver", "get_ok"}
CAPS = {"confirms", "credit", "mandatory", "exchange-bindings", "dead-letter", "ttl"}

Frame = collections.namedtuple("Frame", "op header payload")


class FireError(Exception):
    """An `error` frame."""

    def __init__(self, header):
        super().__init__(header)
        self.code = header["code"]
        self.fatal = header.get("fatal", False)


class Closed(Exception):
    """The server is gone; `close` is its frame of that name, if it sent one."""

    def __init__(self, close=None):
        super().__init__(close)
        self.close = close


class Socket:
    """Frames over TCP or TLS."""

    def __init__(self, host, port, tls=None):
        plain = socket.create_connection((host, port), PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = tls.wrap_socket(plain, server_hostname=host) if tls else plain
        self.socket.sendall(b"FMQ1")

    def send(self, frame):
        self.socket.sendall(struct.pack(">I", len(frame)) + frame)

    def _exactly(self, count):
        parts = []
        while count:
            try:
                part = self.socket.recv(min(count, 1 << 20))
            except ConnectionResetError:
                part = b""
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def receive(self, timeout):
        self.socket.settimeout(timeout)
        length = self._exactly(4)
        if length is None:
            return None
        frame = self._exactly(struct.unpack(">I", length)[0])
        assert frame is not None, "the server stopped in the middle of a frame"
        return frame

    def abort(self):
        self.socket.close()


class WebSocket:
    """Frames as the messages of a WebSocket."""

    def __init__(self, url, tls=None, origin=None):
        self.socket = connect_websocket(
            url, ssl=tls, origin=origin, max_size=None, open_timeout=PATIENCE, proxy=None
        )

    def send(self, frame):
        try:
            self.socket.send(frame)
        except ConnectionClosed as error:
            raise Closed() from error

    def receive(self, timeout):
        try:
            message = self.socket.recv(timeout)
        except ConnectionClosed:
            return None
        assert isinstance(message, bytes), "the server sent text"
        return message

    def abort(self):
        # The TCP connection alone, without a goodbye. It may be gone already.
        with contextlib.suppress(OSError):
            self.socket.socket.shutdown(socket.SHUT_RDWR)


class Fire:
    """One connection. All that is not asked for waits in a list of its kind."""

    def __init__(self, url, tls=None, origin=None, heartbeat=0, hello=None):
        parts = urllib.parse.urlsplit(url)
        user = urllib.parse.unquote(parts.username or "guest")
        password = urllib.parse.unquote(parts.password or "guest")
        if parts.scheme in ("fires", "wss"):
            tls = tls or ssl.create_default_context()
        else:
            tls = None
        if parts.scheme in ("ws", "wss"):
            query = urllib.parse.parse_qs(parts.query)
            vhost = query.get("vhost", [""])[0]
            port = parts.port or (15671 if tls else 15672)
            target = parts._replace(
                netloc=f"{parts.hostname}:{port}", path=parts.path.rstrip("/") or "/fire"
            )
            self.transport = WebSocket(target.geturl(), tls, origin)
        else:
            vhost = urllib.parse.unquote(parts.path[1:])
            port = parts.port or (5674 if tls else 5673)
            self.transport = Socket(parts.hostname, port, tls)
        self.rid = 0
        self.seq = 0
        self.upto = 0
        self.tag = 0
        self.unsettled = set()
        self.nacked = {}
        self.credit = collections.Counter()
        self.deliveries = collections.deque()
        self.returns = []
        self.cancelled = []
        self.errors = []
        self.flows = []
        self.replies = {}
        auth = {"mech": "plain", "user": user, "pass": password}
        client = {"name": "fire.py", "version": "1", "lang": "python"}
        header = {"ver": 1, "vhost": vhost, "auth": auth, "heartbeat": heartbeat}
        self.send("hello", {**header, "client": client, "caps": [], **(hello or {})})
        frame = self.receive()
        if frame.op == "error":
            raise FireError(frame.header)
        assert frame.op == "welcome", frame
        self.welcome = frame.header
        assert self.welcome["ver"] == 1 and CAPS <= set(self.welcome["caps"]), frame
        assert self.welcome["conn_id"] and self.welcome["server"]["version"], frame

    # Frames.

    def send(self, op, header, payload=b""):
        packed = msgpack.packb(header) if header else b""
        number = OPS.get(op, op)
        self.transport.send(struct.pack(">BI", number, len(packed)) + packed + payload)

    def receive(self, timeout=PATIENCE):
        """The next frame, whatever it is."""
        frame = self.transport.receive(timeout)
        if frame is None:
            raise Closed()
        number, length = struct.unpack_from(">BI", frame)
        packed, payload = frame[5 : 5 + length], frame[5 + length :]
        assert len(packed) == length, "hlen is beyond the frame"
        header = msgpack.unpackb(packed, strict_map_key=False) if packed else {}
        assert isinstance(header, dict) and all(isinstance(key, str) for key in header), header
        op = NAMES[number]
        assert op in WITH_PAYLOAD or not payload, (op, payload)
        return Frame(op, header, payload)

    def step(self, timeout=PATIENCE):
        """Takes one frame and puts it where it belongs."""
        frame = self.receive(timeout)
        getattr(self, f"on_{frame.op}")(frame)
        return frame.op

    def until(self, done, what):
        while not done():
            try:
                self.step()
            except TimeoutError:
                raise AssertionError(f"waited in vain for {what}") from None

    def on_ping(self, _frame):
        self.send("pong", {})

    def on_pong(self, _frame):
        pass

    def on_close(self, frame):
        self.send("close", {"code": 200, "msg": "bye"})
        raise Closed(frame.header)

    def on_ok(self, frame):
        self.replies[frame.header["rid"]] = frame

    on_get_ok = on_ok

    def on_error(self, frame):
        rid = frame.header.get("rid")
        if rid is not None:
            self.replies[rid] = frame
        elif frame.header.get("fatal"):
            raise FireError(frame.header)
        else:
            self.errors.append(frame.header)

    def on_flow(self, frame):
        self.flows.append(frame.header.get("pause", False))

    def on_confirm(self, frame):
        header = frame.header
        if header.get("nack"):
            assert header["seq"] in self.unsettled and header["seq"] > self.upto, header
            self.unsettled.discard(header["seq"])
            self.nacked[header["seq"]] = header["code"]
        else:
            assert self.upto < header["upto"] <= self.seq, (self.upto, header, self.seq)
            self.upto = header["upto"]
            self.unsettled = {seq for seq in self.unsettled if seq > self.upto}

    def on_return(self, frame):
        seq = frame.header.get("seq", 0)
        assert seq == 0 or seq in self.unsettled, "a return after its confirm"
        assert frame.header["code"] == 312, frame
        self.returns.append(frame)

    def on_deliver(self, frame):
        sub = frame.header.get("sub", 0)
        self.credit[sub] -= 1
        assert self.credit[sub] >= 0, "more was sent than there was credit for"
        assert frame.header["tag"] > self.tag, (self.tag, frame)
        self.tag = frame.header["tag"]
        self.deliveries.append(frame)

    def on_cancelled(self, frame):
        self.cancelled.append(frame.header)

    # Requests.

    def request(self, op, **header):
        self.rid += 1
        rid = self.rid
        self.send(op, {"rid": rid, **header})
        self.until(lambda: rid in self.replies, f"the answer to {op}")
        frame = self.replies.pop(rid)
        if frame.op == "error":
            raise FireError(frame.header)
        return frame

    def ask(self, op, **header):
        return self.request(op, **header).header

    def queue(self, name, durable=True, **args):
        names = {key.replace("_", "-"): value for key, value in args.items()}
        return self.ask("declare_queue", name=name, durable=durable, args=names)

    def count(self, name):
        return self.ask("declare_queue", name=name, passive=True).get("messages", 0)

    def publish(self, exchange, key, body, confirm=True, **header):
        """Returns its sequence number."""
        if confirm:
            self.seq += 1
            self.unsettled.add(self.seq)
            header["seq"] = self.seq
        self.send("publish", {"exchange": exchange, "key": key, **header}, body)
        return self.seq if confirm else 0

    def confirmed(self):
        """Waits until all is confirmed, and gives what was refused since the last time."""
        self.until(lambda: not self.unsettled, "confirms")
        nacked, self.nacked = self.nacked, {}
        return nacked

    def subscribe(self, sub, queue, credit, **header):
        self.credit[sub] += credit
        return self.ask("subscribe", sub=sub, queue=queue, credit=credit, **header)

    def grant(self, sub, credit):
        self.credit[sub] += credit
        self.send("credit", {"sub": sub, "credit": credit})

    def next(self):
        self.until(lambda: self.deliveries, "a delivery")
        return self.deliveries.popleft()

    def ack(self, frame, multiple=False):
        self.send("ack", {"tag": frame.header["tag"], "multiple": multiple})

    def nack(self, frame, requeue, multiple=False):
        header = {"tag": frame.header["tag"], "requeue": requeue, "multiple": multiple}
        self.send("nack", header)

    def get(self, queue, **header):
        """A message, or None."""
        frame = self.request("get", queue=queue, **header)
        if frame.op == "ok":
            assert frame.header["empty"] is True, frame
            return None
        # Tags of both kinds are from one row.
        assert frame.header["tag"] > self.tag
        self.tag = frame.header["tag"]
        return frame

    def drain(self, queue):
        bodies = []
        while (frame := self.get(queue)) is not None:
            self.ack(frame)
            bodies.append(frame.payload)
        return bodies

    def settle(self):
        """Waits until the server has seen all that was sent before."""
        self.ask("declare_exchange", name="amq.direct", type="direct", durable=True, passive=True)

    def close(self):
        self.send("close", {"code": 200, "msg": "bye"})
        try:
            while True:
                frame = self.receive()
                if frame.op == "close":
                    self.transport.abort()
                    return
        except Closed:
            raise AssertionError("no close came back") from None

    def abort(self):
        self.transport.abort()
