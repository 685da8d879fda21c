"""What hostile clients of Amaquet cost others: `amaquet_abuse.py PORT CHECK [SIZE]`.

Tests run it small. In full, against a broker on its own (and `ulimit -n 20000` for both):

    amaquet_abuse.py 7272 connections 10000
    amaquet_abuse.py 7272 keys 1000000
    amaquet_abuse.py 7272 payloads 16777216
"""

import json
import sys
import threading
import time

from amaquet import COMMAND, HELLO, RESPONSE, Amaquet, AmaquetError, Wire, frame

PORT = int(sys.argv[1])


def timed(action, *arguments, **named):
    start = time.monotonic()
    action(*arguments, **named)
    return time.monotonic() - start


def report(what, times):
    times = sorted(times)
    median, longest = times[len(times) // 2], times[-1]
    spread = f"median {median * 1e3:.2f} ms, longest {longest * 1e3:.2f} ms"
    print(f"{what}: {len(times)} times, {spread}")


def connections(size=400):
    """Half of them say HELLO and nothing more, half stop within a frame."""
    client = Amaquet(PORT)
    first = client.call("counter.add", key="c")["value"]
    before = client.call("server.info")
    report("alone", [timed(client.call, "counter.add", key="c") for _ in range(200)])
    stuck = frame(COMMAND, 1, b'{"command":"value.set","key":"k"}' + b" " * 4096)
    all_of_them = []
    for number in range(size):
        wire = Wire(PORT)
        if number % 2:
            wire.send(stuck[: 1 + number % (len(stuck) - 1)])
        else:
            wire.send(frame(HELLO, 1, b""))
            assert wire.receive().kind == RESPONSE
        all_of_them.append(wire)
    report("beside them", [timed(client.call, "counter.add", key="c") for _ in range(200)])
    report("newcomers", [timed(lambda: Amaquet(PORT).wire.close()) for _ in range(20)])
    after = client.call("server.info")
    each = (after["memory_bytes"] - before["memory_bytes"]) // size
    print(f"{after['connections']} connections; {each} bytes of memory each")
    assert client.call("counter.get", key="c")["value"] == first + 400
    for wire in all_of_them:
        wire.close()
    while client.call("server.info")["connections"] > before["connections"]:
        time.sleep(0.01)


def write(client, names):
    """Makes keys, 200 commands at a time."""
    for at in range(0, len(names), 200):
        some = [client.begin("counter.set", key=name, value=1) for name in names[at : at + 200]]
        for request in some:
            assert client.result(request) == {"value": 1}


def keys(size=20_000):
    """All of them are scanned while others come and go."""
    client, scanner = Amaquet(PORT), Amaquet(PORT)
    stays = [f"stays:{number:07}" for number in range(size)]
    print(f"{size} keys were made in {timed(write, client, stays):.1f} s")
    stop = threading.Event()
    written = []

    def come_and_go():
        for round_number in range(1 << 30):
            names = [f"comes:{round_number}:{number}" for number in range(200)]
            written.append(timed(write, client, names))
            for request in [client.begin("key.delete", key=name) for name in names]:
                assert client.result(request) == {"deleted": True}
            if stop.is_set():
                return

    writer = threading.Thread(target=come_and_go)
    writer.start()
    found, cursor, pages = set(), None, []
    while True:
        named = {"limit": 10_000} if cursor is None else {"limit": 10_000, "cursor": cursor}
        start = time.monotonic()
        page = scanner.call("key.scan", **named)
        pages.append(time.monotonic() - start)
        found.update(page["keys"])
        cursor = page["cursor"]
        if cursor is None:
            break
    stop.set()
    writer.join()
    missing = set(stays) - found
    assert not missing, f"{len(missing)} keys were not found"
    report("pages of 10,000 keys", pages)
    report("200 writes meanwhile", written)


def payloads(size=1 << 20):
    """JSON that is deep, long or out of bounds, in payloads of so many bytes."""
    client, other = Amaquet(PORT), Amaquet(PORT)

    def command(value):
        head = b'{"command":"value.set","key":"k","value":'
        return head + value[: size - len(head) - 1] + b"}"

    half = size // 2
    bad = {
        "arrays within each other": command(b"[" * half + b"]" * half),
        "arrays that do not end": b"[" * size,
        "objects within each other": command(b'{"a":' * (size // 5)),
        "digits": b'{"command":"counter.add","key":"n","by":' + b"9" * (size - 50) + b"}",
        "an exponent": b'{"command":"counter.add","key":"n","by":1e' + b"9" * (size - 50) + b"}",
        "a string that does not end": b'{"command":"' + b"x" * (size - 12),
        "escapes that do not end": b'{"command":"' + b"\\" * (size - 12),
        "bytes that are no text": b'{"command":"' + b"\xff" * (size - 14) + b'"}',
        "a command without an end": b'{"command":"' + b"x" * (size - 14) + b'"}',
    }
    for what, payload in bad.items():
        assert len(payload) <= size, what
        request = client.start(COMMAND, payload)
        waits = [timed(other.call, "server.ping")]
        try:
            client.result(request)
            raise AssertionError(f"{what} was taken")
        except AmaquetError as error:
            assert error.code in ("BAD_REQUEST", "UNKNOWN_COMMAND"), (what, error)
            assert len(error.message) < 1000, what
        waits.append(timed(other.call, "server.ping"))
        report(what, waits)
    # Long, but as it should be.
    count = size // 12
    fields = ",".join(f'"f{number:06}":0' for number in range(count))
    good = command(f"{{{fields}}}".encode()) if len(fields) < size - 64 else command(b"0")
    assert client.result(client.start(COMMAND, good))["version"] > 0
    many = json.dumps({"command": "set.add", "key": "s", "members": ["m"] * 100_001}).encode()
    try:
        client.result(client.start(COMMAND, many))
        raise AssertionError("too many members were taken")
    except AmaquetError as error:
        assert error.code == "BAD_REQUEST" and "members" in error.message, error


if __name__ == "__main__":
    checks = {check.__name__: check for check in (connections, keys, payloads)}
    checks[sys.argv[2]](*map(int, sys.argv[3:]))
