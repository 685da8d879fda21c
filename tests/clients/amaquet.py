"""A small Amaquet client, written from the protocol's documents alone, with nothing but Python.

It is strict: whatever the documents say of what a server sends is asserted of all that comes.
"""

import base64
import collections
import datetime
import hashlib
import json
import os
import socket
import struct
import time

PATIENCE = 20

HEADER = struct.Struct(">4sBBHHHQI")
REQUEST, RESPONSE, EVENT = 1, 2, 3
COMMAND, HELLO, AUTH, SUBSCRIBE, UNSUBSCRIBE, CANCEL = 1, 2, 3, 4, 5, 6
CODES = set(
    """BAD_REQUEST UNKNOWN_COMMAND UNKNOWN_OPCODE UNSUPPORTED_VERSION BAD_FRAME PAYLOAD_TOO_LARGE
    UNAUTHENTICATED FORBIDDEN NOT_FOUND WRONG_TYPE EXISTS CONFLICT DUPLICATE_REQUEST OVERLOADED
    CANCELLED TIMEOUT INTERNAL""".split()
)
PAYLOADS = {"json", "text", "bytes"}
# Fields of results that may be null.
NULLABLE = {
    ("key.ttl", "ttl_ms"),
    ("key.scan", "cursor"),
    ("value.swap", "previous"),
    ("queue.stats", "oldest_message_age_ms"),
}


class AmaquetError(Exception):
    """A refusal."""

    def __init__(self, error):
        super().__init__(error)
        self.code = error["code"]
        self.message = error["message"]
        self.retry_after_ms = error.get("retry_after_ms")


class Closed(Exception):
    """The server is gone."""


Frame = collections.namedtuple("Frame", "kind opcode id payload")


def frame(opcode, request_id, payload, *, magic=b"AMQT", version=1, kind=REQUEST, flags=0, zero=0):
    """A frame as bytes; the arguments by name are for broken ones."""
    return HEADER.pack(magic, version, kind, flags, opcode, zero, request_id, len(payload)) + payload


def text(value):
    return {"type": "text", "data": value}


def data(value):
    return {"type": "json", "data": value}


def raw(value):
    return {"type": "bytes", "data": base64.b64encode(value).decode()}


class Wire:
    """Frames over TCP or TLS."""

    def __init__(self, port, tls=None):
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = tls.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain
        self.input = b""

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, timeout=PATIENCE):
        """The next frame; `None` at the end of the connection."""
        while True:
            if len(self.input) >= HEADER.size:
                head = HEADER.unpack_from(self.input)
                magic, version, kind, flags, opcode, reserved, request_id, length = head
                assert (magic, version, flags, reserved) == (b"AMQT", 1, 0, 0), head
                assert kind in (RESPONSE, EVENT), head
                if len(self.input) >= HEADER.size + length:
                    payload = self.input[HEADER.size : HEADER.size + length]
                    self.input = self.input[HEADER.size + length :]
                    return Frame(kind, opcode, request_id, loads(payload))
            self.socket.settimeout(timeout)
            try:
                more = self.socket.recv(1 << 20)
            except ConnectionResetError:
                more = b""
            if not more:
                assert self.input == b"", f"the connection ended in a frame: {self.input}"
                return None
            self.input += more

    def close(self):
        self.socket.close()


def loads(payload):
    def once(pairs):
        found = dict(pairs)
        assert len(found) == len(pairs), f"a field is there twice: {pairs}"
        return found

    def constant(name):
        raise AssertionError(f"{name} is no JSON")

    value = json.loads(payload.decode(), object_pairs_hook=once, parse_constant=constant)
    assert isinstance(value, dict), payload
    return value


class Amaquet:
    """A connection. `started` requests may be answered in any order."""

    def __init__(self, port, *, api_key=None, tls=None, greet=True):
        self.wire = Wire(port, tls)
        self.newest = 0
        self.waiting = {}
        self.answers = {}
        self.events = collections.defaultdict(collections.deque)
        self.table = {}
        self.hello = self.greet() if greet else None
        if api_key is not None:
            self.login = self.ask(AUTH, {"api_key": api_key})
        if greet and (api_key is not None or not self.hello["auth_required"]):
            commands = self.call("server.commands")["commands"]
            self.table = {command["name"]: command for command in commands}

    # Requests.

    def start(self, opcode, payload, request_id=None):
        if request_id is None:
            self.newest += 1
            request_id = self.newest
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        self.waiting[request_id] = opcode
        self.wire.send(frame(opcode, request_id, payload))
        return request_id

    def ask(self, opcode, payload):
        return self.result(self.start(opcode, payload))

    def begin(self, command, **arguments):
        return self.start(COMMAND, {"command": command, **arguments})

    def call(self, command, **arguments):
        result = self.result(self.begin(command, **arguments))
        self.check(command, result)
        return result

    def result(self, request_id):
        while request_id not in self.answers:
            self.step()
        answer = self.answers.pop(request_id)
        if isinstance(answer, AmaquetError):
            raise answer
        return answer

    def step(self, timeout=PATIENCE):
        """Takes one frame; `False` when none came in time."""
        try:
            came = self.wire.receive(timeout)
        except TimeoutError:
            return False
        if came is None:
            raise Closed
        if came.kind == EVENT:
            assert came.opcode == SUBSCRIBE, came
            self.on_event(came.id, came.payload)
            return True
        if came.opcode == SUBSCRIBE and came.id not in self.waiting:
            # The server ended a subscription.
            self.events[came.id].append(error_of(came.payload))
            return True
        assert self.waiting.pop(came.id) == came.opcode, came
        self.answers[came.id] = answer_of(came.payload)
        return True

    # The greeting.

    def greet(self):
        nonce = os.urandom(32)
        hello = self.ask(HELLO, {"nonce": base64.b64encode(nonce).decode()})
        assert hello["protocol"] == 1, hello
        assert all(isinstance(hello[name], str) for name in ("server", "version", "node_id"))
        assert isinstance(hello["auth_required"], bool), hello
        assert isinstance(hello["features"], list), hello
        public_key = base64.b64decode(hello["public_key"], validate=True)
        signature = base64.b64decode(hello["signature"], validate=True)
        assert is_signed(public_key, b"amaquet-hello-v1" + nonce, signature), hello
        return hello

    # Pub/Sub.

    def subscribe(self, key, channel, **options):
        payload = {"key": key, "channel": channel, **options}
        request_id = self.start(SUBSCRIBE, payload)
        result = self.result(request_id)
        assert result == {"key": key, "channel": channel}, result
        return request_id

    def unsubscribe(self, key, channel):
        result = self.ask(UNSUBSCRIBE, {"key": key, "channel": channel})
        assert result.keys() == {"unsubscribed"}, result
        return result["unsubscribed"]

    def cancel(self, request_id):
        result = self.ask(CANCEL, {"request_id": request_id})
        assert result["request_id"] == request_id, result
        assert isinstance(result["cancelled"], bool), result
        return result["cancelled"]

    def event(self, subscription, timeout=PATIENCE):
        """The next event; `None` when none comes in time."""
        end = time.monotonic() + timeout
        while not self.events[subscription]:
            left = end - time.monotonic()
            if left <= 0 or not self.step(left):
                return None
        event = self.events[subscription].popleft()
        if isinstance(event, AmaquetError):
            raise event
        return event

    def on_event(self, subscription, event):
        assert {"key", "channel", "payload", "published_at", "dropped"} <= event.keys(), event
        check_payload(event["payload"])
        when = datetime.datetime.fromisoformat(event["published_at"])
        assert when.tzinfo is not None, event
        assert isinstance(event["dropped"], int) and event["dropped"] >= 0, event
        self.events[subscription].append(event)

    def drain(self):
        """Reads on until an answer shows that what came before is here."""
        self.call("server.ping")

    def check(self, command, result):
        """A result has what `server.commands` says, and nothing else."""
        if command not in self.table:
            return
        declared = self.table[command]["result"]
        assert result.keys() == declared.keys(), (command, result, declared)
        for name, kind in declared.items():
            value = result[name]
            if value is None:
                assert (command, name) in NULLABLE, (command, name)
            else:
                assert is_of(kind, value), (command, name, kind, value)

    def close(self):
        self.wire.close()


def error_of(payload):
    assert payload["ok"] is False, payload
    error = payload["error"]
    assert error["code"] in CODES, error
    assert isinstance(error["message"], str) and error["message"], error
    return AmaquetError(error)


def answer_of(payload):
    if payload["ok"] is True:
        assert payload.keys() == {"ok", "result"}, payload
        assert isinstance(payload["result"], dict), payload
        return payload["result"]
    return error_of(payload)


def check_payload(payload):
    assert payload.keys() == {"type", "data"}, payload
    assert payload["type"] in PAYLOADS, payload
    if payload["type"] != "json":
        assert isinstance(payload["data"], str), payload
    if payload["type"] == "bytes":
        base64.b64decode(payload["data"], validate=True)


def is_of(kind, value):
    if kind.endswith("[]"):
        return isinstance(value, list) and all(is_of(kind[:-2], item) for item in value)
    if kind == "payload":
        check_payload(value)
        return True
    if kind == "message":
        fields = {
            "id", "payload", "headers", "attempts", "fairness_key", "enqueued_at",
            "lease_expires_at",
        }  # fmt: skip
        check_payload(value["payload"])
        return value.keys() <= fields and fields - value.keys() <= {"lease_expires_at"}
    if kind in ("i64", "u64"):
        low, high = (-(1 << 63), 1 << 63) if kind == "i64" else (0, 1 << 64)
        return type(value) is int and low <= value < high
    types = {"string": str, "bool": bool, "number": (int, float), "object": (dict, list)}
    return isinstance(value, types[kind])


# Ed25519 (RFC 8032, 5.1.7), as far as a check of a signature needs it.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(one, other):
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c = 2 * one[3] * other[3] * D % P
    d = 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    product = (0, 1, 1, 0)
    while number:
        if number & 1:
            product = add(product, point)
        point = add(point, point)
        number >>= 1
    return product


def x_of(y, sign):
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P)
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def point_of(encoded):
    number = int.from_bytes(encoded, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    x = x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


BASE_Y = 4 * pow(5, -1, P) % P
BASE_X = x_of(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def is_signed(public_key, message, signature):
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key, r = point_of(public_key), point_of(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    left = times(s, BASE)
    right = add(r, times(int.from_bytes(digest, "little") % L, key))
    return not ((left[0] * right[2] - right[0] * left[2]) % P) and not (
        (left[1] * right[2] - right[1] * left[2]) % P
    )
