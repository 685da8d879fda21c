"""What a FireMQ client sees of the broker: `fire_checks.py URL CHECK`.

`AMQP` and `FILA` in the environment are the ports of those doors, `TANDA` is the binary. Each check
uses queues of its own. A failed one ends with an AssertionError and exit code 1.
"""

import datetime
import os
import ssl
import struct
import subprocess
import sys
import time

import msgpack
import pika

from fire import Closed, Fire, FireError

URL = sys.argv[1]
TLS = None
if "CA" in os.environ:
    TLS = ssl.create_default_context(cafile=os.environ["CA"])


def connect(url=URL, **options):
    return Fire(url, tls=TLS, **options)


def amqp():
    parameters = pika.ConnectionParameters("127.0.0.1", int(os.environ["AMQP"]))
    return pika.BlockingConnection(parameters)


def fails(code, action, *arguments, **named):
    try:
        action(*arguments, **named)
    except FireError as error:
        assert error.code == code, error
        return error
    raise AssertionError(f"no error {code}")


def get_soon(fire, queue):
    """The next message, within ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if (frame := fire.get(queue)) is not None:
            return frame
        time.sleep(0.01)
    raise AssertionError(f"nothing came to {queue}")


def publish_confirm_consume():
    fire = connect()
    assert fire.queue("work")["name"] == "work"
    props = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": 600_000,
        "message_id": "m",
        "timestamp": 1700000000,
        "type": "kind",
        "user_id": "guest",
        "app_id": "app",
        "priority": 3,
    }
    headers = {
        "nil": None,
        "yes": True,
        "int": -5,
        "big": 2**63 + 1,
        "float": 1.5,
        "text": "täxt",
        "bytes": b"\x00\xff",
        "list": [1, "a", [b"x"], {"deep": None}],
        "map": {"x": True},
        "ext": msgpack.ExtType(5, b"e"),
        "time": msgpack.Timestamp(1700000000, 5),
    }
    for number in range(200):
        fire.publish("", "work", b"%d" % number, props=props, headers=headers, persistent=True)
    assert fire.confirmed() == {}
    assert fire.upto == 200 and fire.count("work") == 200
    fire.subscribe(1, "work", 10)
    for number in range(200):
        frame = fire.next()
        header = frame.header
        assert frame.payload == b"%d" % number, frame
        assert not header.get("redelivered") and header.get("exchange", "") == "", header
        assert header["key"] == "work" and header["sub"] == 1, header
        assert header["props"] == props, header
        assert header["headers"] == headers, header
        fire.ack(frame)
        if number % 5 == 4:
            fire.grant(1, 5)
    fire.settle()
    assert fire.ask("unsubscribe", sub=1) == {"rid": fire.rid}
    assert fire.count("work") == 0
    large = bytes(range(256)) * 4096
    for body in (b"", large):
        fire.publish("", "work", body)
    assert fire.confirmed() == {}
    assert fire.drain("work") == [b"", large]
    # Without a confirm, and in order with what follows.
    fire.publish("", "work", b"quiet", confirm=False)
    fire.settle()
    assert fire.drain("work") == [b"quiet"]
    fire.close()


def settling():
    fire = connect()
    fire.queue("again")
    for body in (b"a", b"b", b"c"):
        fire.publish("", "again", body)
    fire.confirmed()
    fire.subscribe(7, "again", 3)
    first, _, third = [fire.next() for _ in range(3)]
    fire.nack(third, requeue=True)
    fire.nack(first, requeue=True)
    fire.settle()
    # Back in their places, and no credit is left.
    assert not fire.deliveries and fire.count("again") == 2
    fire.grant(7, 2)
    again = [fire.next() for _ in range(2)]
    assert [frame.payload for frame in again] == [b"a", b"c"]
    assert all(frame.header["redelivered"] for frame in again)
    fire.ack(again[-1], multiple=True)
    fire.settle()
    assert fire.count("again") == 0
    # Unknown tags are an error that ends nothing.
    fire.send("ack", {"tag": 99})
    fire.ack(first)
    fire.settle()
    assert [error["code"] for error in fire.errors] == [406, 406], fire.errors
    fire.publish("", "again", b"once")
    fire.confirmed()
    assert fire.get("again", no_ack=True).payload == b"once"
    assert fire.get("again") is None
    # What was unsubscribed is still held.
    fire.publish("", "again", b"held")
    fire.grant(7, 1)
    held = fire.next()
    fire.ask("unsubscribe", sub=7)
    assert fire.get("again") is None
    fire.nack(held, requeue=False)
    fire.settle()
    assert fire.get("again") is None
    fire.close()


def expiry_and_dead_letters():
    fire = connect()
    fire.ask("declare_exchange", name="graves", type="direct", durable=True)
    fire.queue("dead")
    fire.ask("bind", exchange="graves", queue="dead", key="gone")
    buried = {"x_dead_letter_exchange": "graves", "x_dead_letter_routing_key": "gone"}
    fire.queue("short", x_message_ttl=50, **buried)
    fire.publish("", "short", b"late", headers={"mine": 1})
    frame = get_soon(fire, "dead")
    assert frame.payload == b"late" and frame.header["headers"]["mine"] == 1
    death = frame.header["headers"]["x-death"][0]
    assert death["reason"] == "expired" and death["queue"] == "short", death
    assert death["count"] == 1 and death["routing-keys"] == ["short"], death
    assert frame.header["exchange"] == "graves" and frame.header["key"] == "gone", frame
    fire.queue("strict", **buried)
    fire.publish("", "strict", b"own time", props={"expiration": 50})
    frame = get_soon(fire, "dead")
    assert frame.payload == b"own time"
    assert frame.header["headers"]["x-death"][0]["original-expiration"] == "50", frame
    fire.publish("", "strict", b"bad")
    fire.nack(get_soon(fire, "strict"), requeue=False)
    frame = get_soon(fire, "dead")
    assert frame.payload == b"bad"
    assert frame.header["headers"]["x-death"][0]["reason"] == "rejected", frame
    fire.close()


def consumers_of_higher_priority_are_served_first():
    fire = connect()
    fire.queue("preferred")
    for sub, args in ((1, {"x-priority": -5}), (2, {}), (3, {"x-priority": 10})):
        fire.subscribe(sub, "preferred", 2, args=args)

    def after(numbers):
        """Who has received each of these."""
        for number in numbers:
            fire.publish("", "preferred", b"%d" % number)
        frames = [fire.next() for _ in numbers]
        return {frame.payload: frame.header.get("sub", 0) for frame in frames}

    found = after(range(6))
    assert found == {b"0": 3, b"1": 3, b"2": 2, b"3": 2, b"4": 1, b"5": 1}, found
    fire.grant(1, 1)
    fire.grant(3, 1)
    assert after([6]) == {b"6": 3}
    assert after([7]) == {b"7": 1}
    fire.close()


def priority_and_limits():
    fire = connect()
    fire.queue("ranked", x_max_priority=5)
    for priority in (1, 5, 3, 9, 0):
        fire.publish("", "ranked", b"%d" % priority, props={"priority": priority})
    fire.confirmed()
    assert fire.drain("ranked") == [b"5", b"9", b"3", b"1", b"0"]
    fire.queue("narrow", x_max_length=2, x_overflow="reject-publish")
    for body in (b"1", b"2", b"3"):
        fire.publish("", "narrow", body)
    nacked = fire.confirmed()
    assert list(nacked) == [fire.seq], nacked
    fire.queue("newest", x_max_length=2)
    for body in (b"1", b"2", b"3"):
        fire.publish("", "newest", body)
    assert fire.confirmed() == {}
    assert fire.drain("newest") == [b"2", b"3"]
    fire.close()


def routing():
    fire = connect()
    for kind in ("fanout", "topic", "headers"):
        fire.ask("declare_exchange", name=f"x-{kind}", type=kind, durable=True)
        fire.queue(f"q-{kind}")
    fire.ask("bind", exchange="x-fanout", queue="q-fanout")
    fire.ask("bind", exchange="x-topic", queue="q-topic", key="a.*.c.#")
    arguments = {"x-match": "any", "h": 1}
    fire.ask("bind", exchange="x-headers", queue="q-headers", args=arguments)
    fire.ask("bind", exchange="x-fanout", to_exchange="x-topic", key="#")
    fire.publish("x-fanout", "a.b.c", b"1")
    fire.publish("x-topic", "a.b", b"2")
    fire.publish("x-topic", "a.b.c.d", b"3")
    fire.publish("x-headers", "", b"4", headers={"h": 1})
    fire.publish("x-headers", "", b"5", headers={"h": "1"})
    assert fire.confirmed() == {}
    assert fire.drain("q-fanout") == [b"1"]
    assert fire.drain("q-topic") == [b"1", b"3"]
    assert fire.drain("q-headers") == [b"4"]
    fire.ask("unbind", exchange="x-topic", queue="q-topic", key="a.*.c.#")
    # What is not there is unbound and deleted as well.
    fire.ask("unbind", exchange="x-topic", queue="q-topic", key="a.*.c.#")
    fire.publish("x-topic", "a.b.c", b"nowhere", mandatory=True)
    assert fire.confirmed() == {}
    returned = fire.returns.pop()
    assert returned.header["seq"] == fire.seq and returned.payload == b"nowhere", returned
    assert returned.header["exchange"] == "x-topic" and returned.header["key"] == "a.b.c"
    fire.publish("", "no such queue", b"dropped")
    assert fire.confirmed() == {}
    fire.ask("delete_exchange", name="x-topic")
    fire.ask("delete_exchange", name="x-topic")
    fire.publish("x-topic", "a.b.c", b"lost")
    assert fire.confirmed() == {fire.seq: 404}
    fire.publish("x-topic", "a.b.c", b"lost", confirm=False)
    fire.settle()
    assert fire.errors.pop()["code"] == 404
    fire.close()


def queues_live_and_die():
    fire = connect()
    other = connect()
    name = fire.queue("", durable=False)["name"]
    assert name.startswith("amq.gen-") and len(name) > 12, name
    for number in range(3):
        fire.publish("", name, b"%d" % number)
    fire.confirmed()
    fails(406, fire.ask, "delete_queue", name=name, if_empty=True)
    assert fire.ask("purge_queue", name=name)["messages"] == 3
    fire.publish("", name, b"last")
    fire.confirmed()
    other.subscribe(1, name, 0)
    assert fire.ask("declare_queue", name=name, passive=True)["consumers"] == 1
    fails(406, fire.ask, "delete_queue", name=name, if_unused=True)
    assert fire.ask("delete_queue", name=name)["messages"] == 1
    other.until(lambda: other.cancelled, "the end of the subscription")
    assert other.cancelled[0]["sub"] == 1 and other.cancelled[0]["code"], other.cancelled
    assert fire.ask("delete_queue", name=name).get("messages", 0) == 0
    fails(404, fire.ask, "declare_queue", name=name, passive=True)
    fails(404, fire.ask, "subscribe", sub=2, queue=name)
    fails(404, fire.ask, "get", queue=name)
    fire.ask("declare_queue", name="mine", exclusive=True)
    fails(405, other.ask, "declare_queue", name="mine", passive=True)
    fire.queue("single")
    fire.subscribe(3, "single", 1, exclusive=True)
    fails(405, other.ask, "subscribe", sub=3, queue="single", credit=1)
    fire.ask("declare_queue", name="leaving", auto_delete=True, durable=True)
    fire.subscribe(4, "leaving", 1)
    fire.ask("unsubscribe", sub=4)
    fails(404, fire.ask, "declare_queue", name="leaving", passive=True)
    fire.queue("fixed", x_message_ttl=1000)
    error = fails(406, fire.queue, "fixed", x_message_ttl=2000)
    assert not error.fatal
    fails(403, fire.queue, "amq.mine")
    fails(530, fire.ask, "delete_exchange", name="amq.direct")
    fails(540, fire.queue, "stream", x_queue_type="stream")
    fire.close()
    other.close()


def what_a_lost_connection_held_comes_back():
    fire = connect()
    fire.queue("kept")
    for body in (b"x", b"y"):
        fire.publish("", "kept", body, persistent=True)
    fire.confirmed()
    fire.subscribe(1, "kept", 2)
    assert fire.next().payload == b"x" and fire.next().payload == b"y"
    fire.abort()
    fire = connect()
    for body in (b"x", b"y"):
        frame = get_soon(fire, "kept")
        assert frame.payload == body and frame.header["redelivered"], frame
        fire.ack(frame)
    fire.close()
    assert connect().get("kept") is None


def errors_and_limits():
    fire = connect()
    # An op that is not known, and one that servers send.
    for op in (0x7F, 0x39):
        fire.rid += 1
        fire.send(op, {"rid": fire.rid})
        fire.until(lambda: fire.rid in fire.replies or fire.errors, "an error")
        header = fire.errors.pop() if fire.errors else fire.replies.pop(fire.rid).header
        assert header["code"] == 540 and not header.get("fatal"), header
    fails(502, fire.ask, "declare_queue", name=5)
    fails(502, fire.ask, "declare_queue", name="q", durable=1)
    # Unknown keys are ignored, nil is absent.
    fire.ask("declare_queue", name="q", later=[1, {}], args=None)
    limit = fire.welcome["max_frame"]
    header = msgpack.packb({"key": "q", "seq": 1})
    frame = struct.pack(">BI", 0x20, len(header)) + header
    fire.seq = 1
    fire.unsettled = {1}
    fire.transport.send(frame + bytes(limit - len(frame)))
    assert fire.confirmed() == {}
    fire.transport.send(frame + bytes(limit - len(frame) + 1))
    try:
        fire.step()
    except FireError as error:
        assert error.code == 501 and error.fatal, error
    else:
        raise AssertionError("a frame above the limit was taken")
    for hello, code in (
        ({"vhost": "no such"}, 530),
        ({"auth": {"mech": "plain", "user": "guest", "pass": "wrong"}}, 403),
        ({"auth": {"mech": "plain", "user": "nobody", "pass": "guest"}}, 403),
    ):
        assert fails(code, connect, hello=hello).fatal


def heartbeats():
    fire = connect(heartbeat=1)
    assert fire.welcome["heartbeat"] == 1
    # A ping comes without anything else, and silence ends the connection.
    assert fire.receive().op == "ping"
    fire.send("ping", {})
    while (frame := fire.receive()).op == "ping":
        pass
    assert frame.op == "pong", frame
    try:
        while True:
            assert fire.receive().op in ("ping", "error", "close")
    except Closed:
        pass
    fire = connect()
    assert fire.welcome.get("heartbeat", 0) == 0
    fire.close()


def between_fire_and_amqp():
    fire = connect()
    connection = amqp()
    channel = connection.channel()
    fire.queue("shared")
    assert channel.queue_declare("shared", durable=True).method.message_count == 0
    headers = {
        "nil": None,
        "yes": True,
        "int": -5,
        # pika makes integers of doubles.
        "float": 2.0,
        "text": "täxt",
        "bytes": b"\x00\xff",
        "list": [1, "a", {"deep": None}],
        "map": {"x": True},
        "big": 2**64 - 1,
    }
    props = {
        "content_type": "text/plain",
        "expiration": 600_000,
        "timestamp": 1700000000,
        "priority": 3,
        "user_id": "guest",
        "correlation_id": "c",
    }
    fire.publish("", "shared", b"body", props=props, headers=headers, persistent=True)
    fire.publish("", "shared", b"bare")
    fire.confirmed()
    method, properties, body = channel.basic_get("shared", auto_ack=True)
    assert body == b"body" and method.routing_key == "shared"
    assert properties.headers == {**headers, "big": "18446744073709551615"}, properties
    assert properties.content_type == "text/plain" and properties.expiration == "600000"
    assert properties.timestamp == 1700000000 and properties.priority == 3
    assert properties.delivery_mode == 2 and properties.user_id == "guest"
    assert properties.correlation_id == "c" and properties.reply_to is None
    _, properties, body = channel.basic_get("shared", auto_ack=True)
    assert body == b"bare" and not properties.headers and properties.delivery_mode != 2
    when = datetime.datetime(2023, 11, 14, 22, 13, 20)
    properties = pika.BasicProperties(
        content_type="text/plain",
        expiration="600000",
        timestamp=1700000000,
        priority=3,
        delivery_mode=2,
        message_id="m",
        headers={"yes": True, "int": 7, "text": "t", "list": [1, "a"], "when": when},
    )
    channel.confirm_delivery()
    channel.basic_publish("amq.topic", "nowhere", b"lost")
    channel.queue_bind("shared", "amq.topic", "to.#")
    channel.basic_publish("amq.topic", "to.fire", b"from amqp", properties)
    frame = fire.get("shared")
    assert frame.payload == b"from amqp", frame
    assert frame.header["exchange"] == "amq.topic" and frame.header["key"] == "to.fire"
    expected = {
        "content_type": "text/plain",
        "expiration": 600_000,
        "timestamp": 1700000000,
        "priority": 3,
        "message_id": "m",
    }
    assert frame.header["props"] == expected, frame
    expected = {"yes": True, "int": 7, "text": "t", "list": [1, "a"], "when": 1700000000}
    assert frame.header["headers"] == expected, frame
    fire.ack(frame)
    # Consumers of both doors share one queue, and its end is told to both.
    fire.subscribe(1, "shared", 1)
    cancelled = []
    channel.add_on_cancel_callback(cancelled.append)
    channel.basic_consume("shared", lambda *_: None)
    assert fire.ask("declare_queue", name="shared", passive=True)["consumers"] == 2
    fire.ask("delete_queue", name="shared")
    fire.until(lambda: fire.cancelled, "the end of the subscription")
    end = time.monotonic() + 10
    while not cancelled and time.monotonic() < end:
        connection.process_data_events(0.1)
    assert cancelled
    connection.close()
    fire.close()


def tanda(*arguments, text=None):
    command = [os.environ["TANDA"], *arguments, "--addr", "127.0.0.1:" + os.environ["FILA"]]
    run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, (command, run.stderr)
    return run.stdout


def between_fire_and_fila():
    fire = connect()
    tanda("queue", "create", "turns", "--visibility-timeout", "1h")
    tanda("send", "turns", "--header", "tenant=a", text="hello")
    frame = fire.get("turns")
    assert frame.payload.rstrip(b"\n") == b"hello" and frame.header["key"] == "turns", frame
    assert frame.header["headers"] == {"tenant": "a"}, frame
    assert frame.header["props"]["message_id"] and frame.header["props"]["timestamp"], frame
    fire.ack(frame)
    props = {"content_type": "text/plain", "correlation_id": "c"}
    headers = {"n": 1, "t": "x", "list": [1, "a"]}
    fire.publish("", "turns", b"from fire", props=props, headers=headers, persistent=True)
    assert fire.confirmed() == {}
    told = tanda("consume", "turns", "--ack", "--count", "1", "--json")
    assert '"from fire"' in told or "from fire" in told, told
    for part in ('"n":"1"', '"t":"x"', "amqp.content_type", "text/plain"):
        assert part in told.replace('": "', '":"'), (part, told)
    # A queue of FireMQ's serves Fila's consumers as well.
    fire.queue("plain")
    fire.publish("", "plain", b"for fila", persistent=True)
    fire.confirmed()
    assert "for fila" in tanda("consume", "plain", "--ack", "--count", "1")
    fire.close()


def scheduling_by_headers():
    fire = connect()
    fire.queue("fair", x_fairness_key="tenant")
    for tenant in ("big", "big", "big", "small"):
        fire.publish("", "fair", tenant.encode(), headers={"tenant": tenant})
    fire.queue("once", x_dedup_window=60_000)
    for _ in range(2):
        headers = {"x-idempotency-key": "k"}
        fire.publish("", "once", b"same", persistent=True, headers=headers)
    fire.publish("", "once", b"later", headers={"x-delay": 300})
    assert fire.confirmed() == {}
    assert fire.drain("fair") == [b"big", b"small", b"big", b"big"]
    found = fire.drain("once")
    assert found == [b"same"], found
    frame = get_soon(fire, "once")
    assert frame.payload == b"later"
    fire.close()


def credit_is_kept():
    """`Fire.on_deliver` asserts that no more comes than was granted."""
    fire = connect()
    fire.queue("much")
    for number in range(1000):
        fire.publish("", "much", b"%d" % number)
    fire.confirmed()
    fire.subscribe(1, "much", 0)
    fire.subscribe(2, "much", 7)
    fire.settle()
    while len(fire.deliveries) < 7:
        fire.step()
    fire.settle()
    assert len(fire.deliveries) == 7
    fire.grant(1, 3)
    fire.until(lambda: len(fire.deliveries) == 10, "three more")
    assert {frame.header["sub"] for frame in fire.deliveries} == {1, 2}
    fire.grant(2, 990)
    fire.until(lambda: len(fire.deliveries) == 1000, "the rest")
    fire.ack(fire.deliveries[-1], multiple=True)
    fire.settle()
    assert fire.count("much") == 0
    fire.close()


globals()[sys.argv[2]]()
