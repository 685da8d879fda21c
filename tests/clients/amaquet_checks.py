"""What an Amaquet client sees of the broker: `amaquet_checks.py PORT CHECK`.

`TANDA` in the environment is the binary, `FILA` and `FIREMQ` are the ports of those doors, `CA` is
the certificate when PORT is the door with TLS (`TLS` is set then). Each check uses keys of its own.
A failed one ends with an AssertionError and exit code 1.
"""

import base64
import datetime
import json
import os
import ssl
import subprocess
import sys
import time

from amaquet import (
    AUTH, CANCEL, COMMAND, EVENT, HELLO, RESPONSE, SUBSCRIBE, Amaquet, AmaquetError, Closed, Wire,
    data, error_of, frame, raw, text,
)  # fmt: skip

PORT = int(sys.argv[1])
TLS = None
if "TLS" in os.environ:
    TLS = ssl.create_default_context(cafile=os.environ["CA"])


def connect(**options):
    return Amaquet(PORT, tls=TLS, **options)


def fails(code, action, *arguments, **named):
    try:
        result = action(*arguments, **named)
    except AmaquetError as error:
        assert error.code == code, error
        return error
    raise AssertionError(f"no error {code} but {result}")


def tanda(*arguments, stdin=None):
    """A command of the command line over Fila or FireMQ."""
    environment = {
        **os.environ,
        "TANDA_ADDR": f"127.0.0.1:{os.environ['FILA']}",
        "TANDA_FIREMQ": f"fire://127.0.0.1:{os.environ['FIREMQ']}",
    }
    ran = subprocess.run(
        [os.environ["TANDA"], *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, (arguments, ran.stderr)
    return ran.stdout


def soon(found, what):
    """Waits until something is so."""
    end = time.monotonic() + 20
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def greeting():
    first = connect()
    assert first.hello["server"] and not first.hello["auth_required"], first.hello
    second = connect()
    for name in ("node_id", "public_key"):
        assert first.hello[name] == second.hello[name], name
    # Without a nonce nothing is signed; the payload may be absent.
    for payload in (b"", b"{}"):
        unsigned = first.result(first.start(HELLO, payload))
        assert unsigned["signature"] is None, unsigned
        assert unsigned["public_key"] == first.hello["public_key"]
    for nonce in ("", "AA==", base64.b64encode(bytes(65)).decode(), "not base64", 7):
        fails("BAD_REQUEST", first.ask, HELLO, {"nonce": nonce})
    for size in (16, 64):
        nonce = base64.b64encode(bytes(size)).decode()
        assert first.ask(HELLO, {"nonce": nonce})["signature"]
    login = first.ask(AUTH, {"api_key": "anything"})
    assert login == {"key_id": None, "name": "anonymous", "superadmin": True}, login
    assert first.call("server.ping") == {"pong": True}
    info = first.call("server.info")
    assert info["version"] == first.hello["version"] and info["connections"] >= 2, info


def values():
    amaquet = connect()
    call = amaquet.call
    payloads = [
        data({"n": [1, -(1 << 63), (1 << 64) - 1, 1.5, None, True, "ü\n\u0000"]}),
        text("grün \u0000 \U0001f980"),
        raw(bytes(range(256))),
        data(None),
        text(""),
        raw(b""),
    ]
    for payload in payloads:
        version = call("value.set", key="v", value=payload)["version"]
        assert call("value.get", key="v") == {"value": payload, "version": version}
    # Anything else in the place of a payload is JSON.
    call("value.set", key="v", value=[1, {"type": "x"}])
    assert call("value.get", key="v")["value"] == data([1, {"type": "x"}])
    for broken in ({"type": "x", "data": 1}, {"type": "text", "data": 1}, raw(b"") | {"data": "="}):
        error = fails("BAD_REQUEST", call, "value.set", key="v", value=broken)
        assert "value" in error.message, error
    # Conditions.
    first = call("value.set", key="c", value=1, if_absent=True)["version"]
    fails("EXISTS", call, "value.set", key="c", value=2, if_absent=True)
    second = call("value.set", key="c", value=2, if_version=first)["version"]
    assert second > first
    fails("CONFLICT", call, "value.set", key="c", value=3, if_version=first)
    fails("CONFLICT", call, "value.set", key="c", value=3, if_version=0)
    fails("CONFLICT", call, "value.set", key="none", value=3, if_version=1)
    call("value.set", key="fresh", value=3, if_version=0)
    fails("CONFLICT", call, "value.delete", key="c", if_version=first)
    assert call("value.delete", key="c", if_version=second) == {"deleted": True}
    assert call("value.delete", key="c") == {"deleted": False}
    fails("NOT_FOUND", call, "value.get", key="c")
    # Swap and many.
    assert call("value.swap", key="s", value=text("a"))["previous"] is None
    swapped = call("value.swap", key="s", value=text("b"))
    assert swapped["previous"] == text("a"), swapped
    many = call("value.get_many", keys=["s", "none", "fresh"])["values"]
    assert [it and it["value"] for it in many] == [text("b"), None, data(3)], many
    # A value set without a time has none.
    call("value.set", key="t", value=1, ttl_ms=60_000)
    assert 0 < call("key.ttl", key="t")["ttl_ms"] <= 60_000
    call("value.set", key="t", value=1)
    assert call("key.ttl", key="t") == {"ttl_ms": None}
    fails("WRONG_TYPE", call, "counter.add", key="t")


def counters():
    call = connect().call
    assert call("counter.add", key="n") == {"value": 1}
    assert call("counter.add", key="n", by=-5) == {"value": -4}
    top = (1 << 63) - 1
    assert call("counter.set", key="n", value=top) == {"value": top}
    fails("CONFLICT", call, "counter.add", key="n")
    assert call("counter.get", key="n") == {"value": top}
    for number in (1 << 63, 1.5, "1", None, True):
        fails("BAD_REQUEST", call, "counter.set", key="n", value=number)
    fails("NOT_FOUND", call, "counter.get", key="none")
    fails("WRONG_TYPE", call, "value.get", key="n")


def maps():
    call = connect().call
    assert call("map.set", key="m", field="a", value=text("x")) == {"created": True}
    assert call("map.set", key="m", field="a", value=text("y")) == {"created": False}
    assert call("map.get", key="m", field="a") == {"value": text("y")}
    fails("NOT_FOUND", call, "map.get", key="m", field="b")
    fails("NOT_FOUND", call, "map.get", key="none", field="b")
    assert call("map.add", key="m", field="n", by=7) == {"value": 7}
    assert call("map.add", key="m", field="n", by=-8) == {"value": -1}
    fails("WRONG_TYPE", call, "map.add", key="m", field="a")
    fields = call("map.all", key="m")["fields"]
    assert fields == {"a": text("y"), "n": data(-1)}, fields
    assert call("map.length", key="m") == {"length": 2}
    assert call("map.remove", key="m", field="a") == {"removed": True}
    assert call("map.remove", key="m", field="a") == {"removed": False}
    assert call("map.remove", key="m", field="n") == {"removed": True}
    # What is empty is not there.
    assert call("key.exists", key="m") == {"exists": False}


def lists():
    amaquet = connect()
    call = amaquet.call
    assert call("list.push", key="l", values=[text("b"), text("c")]) == {"length": 2}
    assert call("list.push", key="l", values=[text("a"), text("z")], side="front")["length"] == 4
    order = [it["data"] for it in call("list.range", key="l", start=0, stop=-1)["values"]]
    assert sorted(order) == ["a", "b", "c", "z"] and order[2:] == ["b", "c"], order
    assert call("list.range", key="l", start=-1, stop=100)["values"] == [text("c")]
    assert call("list.range", key="l", start=3, stop=1)["values"] == []
    assert call("list.pop", key="l", side="back") == {"value": text("c")}
    assert call("list.trim", key="l", start=0, stop=0) == {"length": 1}
    assert call("list.length", key="l") == {"length": 1}
    call("list.pop", key="l")
    fails("NOT_FOUND", call, "list.pop", key="l")
    assert call("key.exists", key="l") == {"exists": False}
    fails("BAD_REQUEST", call, "list.push", key="l", values=[1], side="middle")
    # Waiting: first come, first served.
    fails("TIMEOUT", call, "list.pop", key="w", wait_ms=50)
    waits = [amaquet.begin("list.pop", key="w", wait_ms=20_000) for _ in range(3)]
    amaquet.drain()
    connect().call("list.push", key="w", values=[1, 2, 3])
    assert [amaquet.result(it)["value"] for it in waits] == [data(1), data(2), data(3)]
    fails("BAD_REQUEST", call, "list.pop", key="w", wait_ms=86_400_000)


def sets():
    call = connect().call
    assert call("set.add", key="members", members=["b", "a", "b", "ü"]) == {"added": 3}
    assert call("set.add", key="members", members=["a"]) == {"added": 0}
    assert call("set.members", key="members") == {"members": ["a", "b", "ü"]}
    assert call("set.contains", key="members", member="ü") == {"contains": True}
    assert call("set.contains", key="members", member="x") == {"contains": False}
    assert call("set.length", key="members") == {"length": 3}
    assert call("set.remove", key="members", members=["a", "x", "b"]) == {"removed": 2}
    assert call("set.remove", key="members", members=["ü"]) == {"removed": 1}
    assert call("key.exists", key="members") == {"exists": False}
    fails("NOT_FOUND", call, "set.members", key="members")
    fails("BAD_REQUEST", call, "set.add", key="members", members=[1])


def rankings():
    call = connect().call
    scores = {"a": 1, "b": 2.5, "c": -1e300, "d": 1, "e": -0.5}
    for member, score in scores.items():
        assert call("ranking.add", key="r", member=member, score=score) == {"created": True}
    assert call("ranking.add", key="r", member="e", score=9) == {"created": False}
    assert call("ranking.score", key="r", member="b") == {"score": 2.5}
    order = ["c", "a", "d", "b", "e"]
    names = lambda **range: [
        it["member"] for it in call("ranking.range", key="r", **range)["members"]
    ]
    assert names(start=0, stop=-1) == order
    assert names(start=0, stop=1, reverse=True) == ["e", "b"]
    assert names(min=1, max=2.5) == ["a", "d", "b"]
    assert names(min=1, max=2.5, reverse=True, limit=2) == ["b", "d"]
    for place, member in enumerate(order):
        assert call("ranking.rank", key="r", member=member) == {"rank": place}
    assert call("ranking.rank", key="r", member="e", reverse=True) == {"rank": 0}
    assert call("ranking.length", key="r") == {"length": 5}
    fails("BAD_REQUEST", call, "ranking.range", key="r")
    fails("BAD_REQUEST", call, "ranking.range", key="r", start=0, stop=1, min=1, max=2)
    fails("NOT_FOUND", call, "ranking.score", key="r", member="x")
    for member in order:
        assert call("ranking.remove", key="r", member=member) == {"removed": True}
    fails("NOT_FOUND", call, "ranking.length", key="r")


def locks():
    amaquet, other = connect(), connect()
    held = amaquet.call("lock.acquire", key="l", ttl_ms=60_000)
    assert held["expires_at"] > time.time() * 1000
    fails("CONFLICT", other.call, "lock.acquire", key="l", ttl_ms=1000)
    fails("TIMEOUT", other.call, "lock.acquire", key="l", ttl_ms=1000, wait_ms=20)
    wrong = held["token"] + 1
    fails("CONFLICT", other.call, "lock.renew", key="l", token=wrong, ttl_ms=1000)
    fails("CONFLICT", other.call, "lock.release", key="l", token=wrong)
    renewed = amaquet.call("lock.renew", key="l", token=held["token"], ttl_ms=120_000)
    assert renewed["expires_at"] > held["expires_at"]
    wait = other.begin("lock.acquire", key="l", ttl_ms=60_000, wait_ms=20_000)
    other.drain()
    assert amaquet.call("lock.release", key="l", token=held["token"]) == {"released": True}
    token = other.result(wait)["token"]
    assert token > held["token"]
    # The end of a connection releases nothing.
    other.close()
    fails("CONFLICT", amaquet.call, "lock.acquire", key="l", ttl_ms=1000)
    fails("WRONG_TYPE", amaquet.call, "key.rename", key="l", to="x")
    amaquet.call("lock.release", key="l", token=token)
    fails("NOT_FOUND", amaquet.call, "lock.release", key="l", token=token)
    # One that ends by time is free, and its token is stale.
    short = amaquet.call("lock.acquire", key="l", ttl_ms=20)["token"]
    later = amaquet.call("lock.acquire", key="l", ttl_ms=60_000, wait_ms=20_000)["token"]
    assert later > short
    fails("CONFLICT", amaquet.call, "lock.renew", key="l", token=short, ttl_ms=1000)


def keys():
    call = connect().call
    call("value.set", key="k:v", value=1)
    call("counter.add", key="k:n", ttl_ms=60_000)
    call("list.push", key="k:l", values=[1])
    call("lock.acquire", key="k:lock", ttl_ms=60_000)
    kinds = {"k:v": "value", "k:n": "counter", "k:l": "list", "k:lock": "lock"}
    for key, kind in kinds.items():
        assert call("key.kind", key=key) == {"kind": kind}
        assert call("key.exists", key=key) == {"exists": True}
    fails("NOT_FOUND", call, "key.kind", key="k:none")
    assert call("key.exists", key="k:none") == {"exists": False}
    # Time.
    assert 0 < call("key.ttl", key="k:n")["ttl_ms"] <= 60_000
    call("counter.add", key="k:n", ttl_ms=1)
    assert call("key.ttl", key="k:n")["ttl_ms"] > 1, "a time is for the making of a key"
    assert call("key.persist", key="k:n") == {"persisted": True}
    assert call("key.persist", key="k:n") == {"persisted": False}
    assert call("key.ttl", key="k:n") == {"ttl_ms": None}
    fails("NOT_FOUND", call, "key.ttl", key="k:none")
    expires = call("key.expire", key="k:v", ttl_ms=1)["expires_at"]
    soon(lambda: not call("key.exists", key="k:v")["exists"], "the end of a key")
    assert time.time() * 1000 >= expires
    fails("BAD_REQUEST", call, "key.expire", key="k:n", ttl_ms=0)
    # Names.
    assert call("key.rename", key="k:n", to="k:m") == {"renamed": True}
    fails("EXISTS", call, "key.rename", key="k:m", to="k:l")
    fails("NOT_FOUND", call, "key.rename", key="k:n", to="k:o")
    assert call("counter.get", key="k:m") == {"value": 2}
    # Scan.
    names = {f"scan:{number}" for number in range(250)}
    for name in names:
        call("value.set", key=name, value=1)
    found, cursor = [], None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        part = call("key.scan", glob="scan:*", limit=100, **more)
        assert len(part["keys"]) <= 100
        found += part["keys"]
        cursor = part["cursor"]
        if cursor is None:
            break
    assert set(found) == names
    assert call("key.scan", glob="scan:?")["keys"], "one character"
    fails("BAD_REQUEST", call, "key.scan", limit=0)
    assert call("key.delete", key="k:m") == {"deleted": True}
    assert call("key.delete", key="k:m") == {"deleted": False}


def queues():
    amaquet = connect()
    call = amaquet.call
    assert call("queue.create", queue="q", max_attempts=2, backoff="none") == {"queue": "q"}
    fails("EXISTS", call, "queue.create", queue="q")
    fails("BAD_REQUEST", call, "queue.create", queue="x.dlq")
    fails("NOT_FOUND", call, "queue.push", queue="none", messages=[{"payload": 1}])
    messages = [
        {"payload": data({"a": 1}), "headers": {"h": "v"}, "fairness_key": "f"},
        {"payload": raw(b"\x00\xff"), "fairness_key": "f"},
        {"payload": text("later"), "delay_ms": 60_000},
        {"payload": text("once"), "idempotency_key": "i", "fairness_key": "f"},
        {"payload": text("once"), "idempotency_key": "i"},
    ]
    pushed = call("queue.push", queue="q", messages=messages)["messages"]
    assert [it["duplicate"] for it in pushed] == [False, False, False, False, True], pushed
    assert pushed[4]["id"] == pushed[3]["id"]
    peeked = call("queue.peek", queue="q", max=10)["messages"]
    assert [it["id"] for it in peeked] == [pushed[0]["id"], pushed[1]["id"], pushed[3]["id"]]
    stats = call("queue.stats", queue="q")
    assert (stats["depth"], stats["delayed"], stats["in_flight"]) == (4, 1, 0), stats
    popped = call("queue.pop", queue="q", max=10, lease_ms=60_000)["messages"]
    assert [it["payload"] for it in popped] == [data({"a": 1}), raw(b"\x00\xff"), text("once")]
    assert popped[0]["headers"] == {"h": "v"} and popped[0]["fairness_key"] == "f", popped[0]
    assert popped[0]["attempts"] == 1, popped[0]
    ids = [it["id"] for it in popped]
    extended = call("queue.extend", queue="q", ids=ids[:1], extend_by_ms=90_000)["results"]
    assert extended[0]["lease_expires_at"] > popped[0]["lease_expires_at"], extended
    strange = "0190163d-8694-739b-aea5-966c26f8ad91"
    acked = call("queue.ack", queue="q", ids=[ids[0], strange])["results"]
    assert acked[0] == {"id": ids[0], "ok": True} and acked[1]["error"], acked
    for attempt in (1, 2):
        nacked = call("queue.nack", queue="q", ids=[ids[1]], error="no")["results"]
        assert nacked == [{"id": ids[1], "ok": True}], nacked
        if attempt == 1:
            again = call("queue.pop", queue="q", wait_ms=20_000)["messages"]
            assert again[0]["id"] == ids[1] and again[0]["attempts"] == 2, again
    # A dead letter, and back.
    soon(lambda: call("queue.stats", queue="q.dlq")["depth"] == 1, "a dead letter")
    assert call("queue.redrive", queue="q.dlq") == {"redriven": 1, "left": 0}
    call("queue.ack", queue="q", ids=[ids[2]])
    assert call("queue.pop", queue="q", wait_ms=20_000)["messages"][0]["id"] == ids[1]
    assert call("queue.pop", queue="q") == {"messages": []}
    assert call("queue.pop", queue="q", wait_ms=20) == {"messages": []}
    # Waiting.
    wait = amaquet.begin("queue.pop", queue="q", wait_ms=20_000)
    amaquet.drain()
    connect().call("queue.push", queue="q", messages=[{"payload": 7}])
    assert amaquet.result(wait)["messages"][0]["payload"] == data(7)
    assert call("queue.delete", queue="q") == {"deleted": True}
    assert call("queue.delete", queue="q") == {"deleted": False}


def channels():
    amaquet, other = connect(), connect()
    exact = amaquet.subscribe("bus", "a.b")
    pattern = amaquet.subscribe("bus", "a.#", buffer=1000)
    assert amaquet.call("pubsub.channels", key="bus") == {"channels": ["a.#", "a.b"]}
    published = other.call("pubsub.publish", key="bus", channel="a.b", payload=text("x"))
    assert published == {"receivers": 2}, published
    for subscription in (exact, pattern):
        event = amaquet.event(subscription)
        assert event["channel"] == "a.b" and event["key"] == "bus", event
        assert event["payload"] == text("x") and event["dropped"] == 0, event
    other.call("pubsub.publish", key="bus", channel="a", payload={"n": 1})
    assert amaquet.event(pattern)["payload"] == data({"n": 1})
    # The same place again replaces, also with the same id.
    again = amaquet.subscribe("bus", "a.b")
    assert amaquet.call("pubsub.channels", key="bus") == {"channels": ["a.#", "a.b"]}
    other.call("pubsub.publish", key="bus", channel="a.b", payload=raw(b"\x01"))
    assert amaquet.event(again)["payload"] == raw(b"\x01")
    assert not amaquet.events[exact]
    # An id of a subscription is in use, but for the same place.
    error = fails("DUPLICATE_REQUEST", amaquet.result, amaquet.start(COMMAND, {}, again))
    assert str(again) in error.message, error
    amaquet.result(amaquet.start(SUBSCRIBE, {"key": "bus", "channel": "a.b"}, again))
    assert amaquet.unsubscribe("bus", "a.b") is True
    assert amaquet.unsubscribe("bus", "a.b") is False
    other.call("pubsub.publish", key="bus", channel="a.b", payload=1)
    amaquet.events[pattern].clear()
    amaquet.drain()
    assert not amaquet.events[again]
    for wrong in ({"buffer": 0}, {"buffer": 65_537}, {"channel": 1}, {"key": None}):
        payload = {"key": "bus", "channel": "x", **wrong}
        fails("BAD_REQUEST", amaquet.ask, SUBSCRIBE, payload)
    # The end of the connection ends what it was subscribed to.
    amaquet.close()
    soon(lambda: not other.call("pubsub.channels", key="bus")["channels"], "no subscriptions")
    fails("NOT_FOUND", other.call, "pubsub.channels", key="no such bus")
    fails("WRONG_TYPE", other.call, "pubsub.publish", key="amq.direct", channel="x", payload=1)
    fails("WRONG_TYPE", other.subscribe, "amq.fanout", "x")


def slow_subscribers_lose_events_and_are_told():
    slow, fast, publisher = connect(), connect(), connect()
    lazy = slow.subscribe("flood", "#", buffer=1)
    eager = fast.subscribe("flood", "#", buffer=65_536)
    payload = text("x" * 50_000)
    count = 400
    for number in range(count):
        publisher.call("pubsub.publish", key="flood", channel=str(number), payload=payload)
        event = fast.event(eager)
        assert (event["channel"], event["dropped"]) == (str(number), 0), event["channel"]
    # Publishing went on while nobody read here; the next event says how many were lost.
    publisher.call("pubsub.publish", key="flood", channel="mark", payload=1)
    slow.drain()
    publisher.call("pubsub.publish", key="flood", channel="end", payload=1)
    got = []
    while not got or got[-1]["channel"] != "end":
        got.append(slow.event(lazy))
    lost = sum(it["dropped"] for it in got)
    assert lost > 0 and lost + len(got) == count + 2, (lost, len(got))


def answers_come_out_of_order():
    amaquet = connect()
    slow = amaquet.begin("list.pop", key="ooo", wait_ms=20_000)
    fast = [amaquet.begin("counter.add", key="ooo:n") for _ in range(100)]
    for request in fast:
        amaquet.result(request)
    assert slow in amaquet.waiting
    assert amaquet.call("counter.get", key="ooo:n") == {"value": 100}
    # The id is in use as long as the command runs; the command goes on.
    amaquet.wire.send(frame(COMMAND, slow, b'{"command":"server.ping"}'))
    came = amaquet.wire.receive()
    assert (came.kind, came.id) == (RESPONSE, slow), came
    assert error_of(came.payload).code == "DUPLICATE_REQUEST", came
    assert amaquet.cancel(slow) is True
    fails("CANCELLED", amaquet.result, slow)
    assert amaquet.cancel(slow) is False
    own = amaquet.newest + 1
    assert amaquet.ask(CANCEL, {"request_id": own})["cancelled"] is False
    # Used again once it is over.
    assert amaquet.result(amaquet.start(COMMAND, {"command": "server.ping"}, slow))["pong"]
    # Nobody waits any more: what comes now stays.
    connect().call("list.push", key="ooo", values=[1])
    assert amaquet.call("list.length", key="ooo") == {"length": 1}
    lock = amaquet.call("lock.acquire", key="ooo:l", ttl_ms=60_000)["token"]
    wait = amaquet.begin("lock.acquire", key="ooo:l", ttl_ms=60_000, wait_ms=20_000)
    assert amaquet.cancel(wait) is True
    fails("CANCELLED", amaquet.result, wait)
    amaquet.call("lock.release", key="ooo:l", token=lock)
    amaquet.call("lock.acquire", key="ooo:l", ttl_ms=60_000)
    fails("BAD_REQUEST", amaquet.ask, CANCEL, {"request_id": "1"})
    # As many at once as the server takes, and what it says then.
    waits = [amaquet.begin("list.pop", key="ooo:w", wait_ms=20_000) for _ in range(256)]
    over = fails("OVERLOADED", amaquet.call, "server.ping")
    assert over.retry_after_ms > 0, over
    assert amaquet.ask(HELLO, {})["protocol"] == 1
    for request in waits:
        assert amaquet.cancel(request) is True
        fails("CANCELLED", amaquet.result, request)
    assert amaquet.call("server.ping") == {"pong": True}


def what_a_lost_client_waited_for_stays():
    lost, other = connect(), connect()
    other.call("queue.create", queue="stays-q")
    for _ in range(3):
        lost.begin("list.pop", key="stays", wait_ms=20_000)
        lost.begin("queue.pop", queue="stays-q", wait_ms=20_000)
    lost.close()
    # Whether the broker has seen the end by now or not: what was taken for who is gone goes back.
    other.call("list.push", key="stays", values=[1, 2])
    other.call("queue.push", queue="stays-q", messages=[{"payload": 1}, {"payload": 2}])
    kept = [data(1), data(2)]

    def items():
        # While they are on their way to who is gone, the list is empty, and not there.
        if not other.call("key.exists", key="stays")["exists"]:
            return []
        return other.call("list.range", key="stays", start=0, stop=-1)["values"]

    soon(lambda: items() == kept, "items of a list")
    soon(
        lambda: [
            it["payload"] for it in other.call("queue.peek", queue="stays-q", max=9)["messages"]
        ] == kept,
        "messages of a queue",
    )
    popped = other.call("queue.pop", queue="stays-q", max=9)["messages"]
    assert [it["attempts"] for it in popped] == [1, 1], popped


def broken_frames():
    def refused(sent, code, request_id):
        wire = Wire(PORT, TLS)
        wire.send(sent)
        came = wire.receive()
        assert (came.kind, came.id) == (RESPONSE, request_id), came
        assert error_of(came.payload).code == code, came
        assert wire.receive() is None, "the connection ends"

    ping = b'{"command":"server.ping"}'
    refused(frame(COMMAND, 5, ping, kind=RESPONSE), "BAD_FRAME", 5)
    refused(frame(COMMAND, 5, ping, kind=EVENT), "BAD_FRAME", 5)
    refused(frame(COMMAND, 6, ping, version=2), "UNSUPPORTED_VERSION", 6)
    refused(frame(COMMAND, 7, ping, zero=1), "BAD_FRAME", 7)
    long = bytearray(frame(COMMAND, 8, b""))
    long[20:24] = (64 << 20 | 1).to_bytes(4, "big")
    refused(bytes(long), "PAYLOAD_TOO_LARGE", 8)
    for silent in (b"HTTP/1.1 ", frame(COMMAND, 1, ping, magic=b"AMQP")):
        wire = Wire(PORT, TLS)
        wire.send(silent)
        assert wire.receive() is None
    # What is no fault of the frame leaves the connection as it is.
    amaquet = connect()
    amaquet.wire.send(frame(COMMAND, 1 << 63, ping, flags=0xFFFF))
    came = amaquet.wire.receive()
    assert came.id == 1 << 63 and came.payload["ok"] is True, came
    error = fails("UNKNOWN_OPCODE", amaquet.ask, 99, {})
    assert "99" in error.message, error
    for payload in (b"", b"[]", b"{", b'"x"', b"\xff", b'{"command":1}', b"{}"):
        fails("BAD_REQUEST", amaquet.result, amaquet.start(COMMAND, payload))
    deep = b'{"command":"value.set","key":"deep","value":' + b"[" * 100_000
    fails("BAD_REQUEST", amaquet.result, amaquet.start(COMMAND, deep))
    huge = b'{"command":"counter.set","key":"huge","value":1' + b"0" * 400 + b"}"
    fails("BAD_REQUEST", amaquet.result, amaquet.start(COMMAND, huge))
    fails("UNKNOWN_COMMAND", amaquet.call, "value.frobnicate")
    error = fails("BAD_REQUEST", amaquet.call, "value.get")
    assert "key" in error.message, error
    amaquet.call("value.get_many", keys=[], unknown="ignored")
    assert amaquet.call("server.ping") == {"pong": True}


def the_table_tells_all():
    amaquet = connect()
    families = {name.split(".")[0] for name in amaquet.table}
    expected = "server key value counter map list set ranking lock queue pubsub".split()
    assert families == set(expected), families
    assert len(amaquet.table) == 56, len(amaquet.table)
    for command in amaquet.table.values():
        assert command["summary"] and command["permission"] in {"-", "r", "w", "a"}, command
        for argument in command["arguments"]:
            assert argument["type"] and isinstance(argument["required"], bool), argument
        # What must be there is missed, by its name.
        required = [it["name"] for it in command["arguments"] if it["required"]]
        if required:
            error = fails("BAD_REQUEST", amaquet.call, command["name"])
            assert required[0] in error.message, error


def other_doors():
    amaquet = connect()
    call = amaquet.call
    # Fila -> Amaquet and back, over a queue that this door made.
    call("queue.create", queue="shared")
    tanda("send", "shared", "plain", "--header", "h=v", "--fairness-key", "f")
    popped = call("queue.pop", queue="shared", wait_ms=20_000)["messages"][0]
    assert popped["headers"]["h"] == "v" and popped["fairness_key"] == "f", popped
    assert base64.b64decode(popped["payload"]["data"]) == b"plain", popped
    call("queue.ack", queue="shared", ids=[popped["id"]])
    payloads = [text("t"), data({"j": 1}), raw(b"b")]
    call("queue.push", queue="shared", messages=[{"payload": it} for it in payloads])
    lines = tanda("consume", "shared", "--ack", "--raw", "--count", "3").splitlines()
    assert lines[0] == "t" and json.loads(lines[1]) == {"j": 1} and lines[2] == "b", lines
    # A key of pubsub is the topic exchange of that name.
    events = amaquet.subscribe("doors", "order.*")
    tanda("exchange", "send", "doors", "hello", "--routing-key", "order.new", "--maybe")
    event = amaquet.event(events)
    assert event["channel"] == "order.new", event
    call("queue.create", queue="bound")
    tanda("exchange", "bind", "doors", "bound", "--routing-key", "order.#")
    published = call("pubsub.publish", key="doors", channel="order.new", payload=text("both"))
    assert published == {"receivers": 2}, published
    assert amaquet.event(events)["payload"] == text("both")
    assert tanda("consume", "bound", "--ack", "--raw", "--count", "1") == "both\n"
    # A message pushed here says so at the other doors too.
    call("queue.push", queue="shared", messages=[{"payload": data([1]), "headers": {"a": "b"}}])
    shown = json.loads(tanda("consume", "shared", "--ack", "--json", "--count", "1"))
    assert shown["headers"]["a"] == "b", shown
    assert shown["headers"]["amqp.content_type"] == "application/json", shown


def api_keys():
    """The broker asks for API keys; `TANDA_API_KEY_FILE` holds that of a superadmin."""
    with open(os.environ["TANDA_API_KEY_FILE"], encoding="utf-8") as file:
        root = file.read().strip()
    stranger = connect()
    assert stranger.hello["auth_required"] is True
    for action in (
        lambda: stranger.call("server.ping"),
        lambda: stranger.call("no.such"),
        lambda: stranger.result(stranger.start(COMMAND, b"{")),
        lambda: stranger.subscribe("bus", "x"),
        lambda: stranger.cancel(1),
        lambda: stranger.ask(99, {}),
        lambda: stranger.ask(AUTH, {"api_key": "wrong"}),
    ):
        fails("UNAUTHENTICATED", action)
    admin = connect(api_key=root)
    assert admin.login["superadmin"] is True and admin.login["key_id"], admin.login
    made = tanda("key", "create", "worker", "--grant", "consume:in*", "--grant", "produce:out*")
    worker = connect(api_key=made.strip())
    assert worker.login["name"] == "worker" and worker.login["superadmin"] is False
    # A failure leaves the connection as it was.
    fails("UNAUTHENTICATED", worker.ask, AUTH, {"api_key": "wrong"})
    admin.call("value.set", key="in:1", value=1)
    assert worker.call("value.get", key="in:1")["value"] == data(1)
    worker.call("value.set", key="out:1", value=1)
    for command, arguments in (
        ("value.get", {"key": "out:1"}),
        ("value.set", {"key": "in:1", "value": 1}),
        ("value.get", {"key": "no such key"}),
        ("value.get_many", {"keys": ["in:1", "x"]}),
        ("key.delete", {"key": "in:1"}),
        ("server.info", {}),
        ("queue.create", {"queue": "in"}),
        ("pubsub.publish", {"key": "in", "channel": "x", "payload": 1}),
    ):
        error = fails("FORBIDDEN", worker.call, command, **arguments)
        assert error.message, error
    fails("FORBIDDEN", worker.subscribe, "out", "x")
    assert worker.call("key.scan")["keys"] == ["in:1"]
    worker.subscribe("in", "x")
    # The last success counts.
    login = worker.ask(AUTH, {"api_key": root})
    assert login["superadmin"] is True
    assert worker.call("key.delete", key="in:1") == {"deleted": True}


def connections_end():
    amaquet = connect()
    amaquet.wire.send(frame(COMMAND, 1, b'{"command":"server.ping"}')[:-3])
    amaquet.wire.socket.shutdown(1) if TLS is None else amaquet.wire.close()
    if TLS is None:
        came = amaquet.wire.receive()
        assert came.id == 1 and error_of(came.payload).code == "BAD_FRAME", came
        assert amaquet.wire.receive() is None
    # A command whose client is gone has taken effect, or not; the broker goes on.
    other = connect()
    assert other.call("server.ping") == {"pong": True}
    when = datetime.datetime.now(datetime.UTC)
    subscription = other.subscribe("ends", "x")
    other.call("pubsub.publish", key="ends", channel="x", payload=1)
    at = datetime.datetime.fromisoformat(other.event(subscription)["published_at"])
    assert abs((at - when).total_seconds()) < 60, (at, when)
    try:
        amaquet.call("server.ping")
    except (Closed, OSError):
        return
    raise AssertionError("the first connection goes on")


globals()[sys.argv[2]]()
