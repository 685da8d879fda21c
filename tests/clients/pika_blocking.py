"""What pika's blocking client sees of the broker: `pika_blocking.py PORT CHECK`.

Each check uses queues of its own. A failed one ends with an AssertionError and exit code 1.
"""

import os
import sys
import time

import pika

PORT = int(sys.argv[1])


def connect(**options):
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", PORT, **options)
    )


def drain(channel, queue):
    """All messages of a queue, acknowledged."""
    bodies = []
    while True:
        method, _, body = channel.basic_get(queue)
        if method is None:
            return bodies
        channel.basic_ack(method.delivery_tag)
        bodies.append(body)


def get_soon(channel, queue):
    """The next message, within ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found = channel.basic_get(queue)
        if found[0] is not None:
            return found
        channel.connection.sleep(0.01)
    raise AssertionError(f"nothing came to {queue}")


def publish_confirm_consume():
    connection = connect()
    channel = connection.channel()
    assert channel.queue_declare("work", durable=True).method.message_count == 0
    channel.confirm_delivery()
    properties = pika.BasicProperties(
        content_type="text/plain",
        delivery_mode=2,
        headers={"n": 1, "text": "t", "list": [1, "a"], "table": {"x": True}},
        correlation_id="c",
        message_id="m",
        timestamp=1700000000,
        type="kind",
        app_id="app",
    )
    for number in range(200):
        channel.basic_publish("", "work", b"%d" % number, properties)
    assert channel.queue_declare("work", passive=True).method.message_count == 200
    received = []

    def on_message(ch, method, props, body):
        assert not method.redelivered and method.routing_key == "work"
        assert props == properties, props
        received.append(body)
        ch.basic_ack(method.delivery_tag)
        if len(received) == 200:
            ch.stop_consuming()

    channel.basic_qos(prefetch_count=10)
    channel.basic_consume("work", on_message)
    channel.start_consuming()
    assert received == [b"%d" % number for number in range(200)]
    assert channel.queue_declare("work", passive=True).method.message_count == 0
    empty = b""
    channel.basic_publish("", "work", empty)
    large = bytes(range(256)) * 4096
    channel.basic_publish("", "work", large)
    assert drain(channel, "work") == [empty, large]
    connection.close()


def requeue_keeps_the_place():
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("again", durable=True)
    channel.confirm_delivery()
    for body in (b"a", b"b", b"c"):
        channel.basic_publish("", "again", body)
    tags = [channel.basic_get("again")[0].delivery_tag for _ in range(3)]
    channel.basic_nack(tags[2], requeue=True)
    channel.basic_reject(tags[0], requeue=True)
    method, _, body = get_soon(channel, "again")
    assert body == b"a" and method.redelivered, body
    method, _, body = get_soon(channel, "again")
    assert body == b"c" and method.redelivered, body
    channel.close()
    channel = connection.channel()
    assert drain(channel, "again") == [b"a", b"b", b"c"]
    connection.close()


def messages_expire_into_the_dead_letter_exchange():
    connection = connect()
    channel = connection.channel()
    channel.exchange_declare("graves", "direct", durable=True)
    channel.queue_declare("dead", durable=True)
    channel.queue_bind("dead", "graves", "gone")
    arguments = {
        "x-message-ttl": 50,
        "x-dead-letter-exchange": "graves",
        "x-dead-letter-routing-key": "gone",
    }
    channel.queue_declare("short", durable=True, arguments=arguments)
    channel.confirm_delivery()
    channel.basic_publish("", "short", b"late")
    _, props, body = get_soon(channel, "dead")
    assert body == b"late"
    death = props.headers["x-death"][0]
    assert death["reason"] == "expired" and death["queue"] == "short", death
    assert death["count"] == 1 and death["routing-keys"] == ["short"], death
    assert props.headers["x-first-death-queue"] == "short"
    rejecting = {"x-dead-letter-exchange": "graves", "x-dead-letter-routing-key": "gone"}
    channel.queue_declare("strict", durable=True, arguments=rejecting)
    channel.basic_publish("", "strict", b"bad")
    method, _, _ = get_soon(channel, "strict")
    channel.basic_reject(method.delivery_tag, requeue=False)
    _, props, body = get_soon(channel, "dead")
    assert body == b"bad" and props.headers["x-death"][0]["reason"] == "rejected"
    connection.close()


def higher_priority_goes_first():
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("ranked", durable=True, arguments={"x-max-priority": 5})
    channel.confirm_delivery()
    for priority in (1, 5, 3, 9, 0):
        properties = pika.BasicProperties(priority=priority)
        channel.basic_publish("", "ranked", b"%d" % priority, properties)
    assert drain(channel, "ranked") == [b"5", b"9", b"3", b"1", b"0"]
    connection.close()


def consumers_of_higher_priority_are_served_first():
    connection = connect()
    publisher = connection.channel()
    publisher.queue_declare("preferred", durable=True)
    publisher.confirm_delivery()
    received = {}
    channels = {}
    # The last to come is the first to be served.
    for name, arguments in (("low", {"x-priority": -5}), ("none", None), ("high", {"x-priority": 10})):
        channel = connection.channel()
        channel.basic_qos(prefetch_count=2)

        def on_message(_channel, method, _properties, body, to=received.setdefault(name, [])):
            to.append((body, method.delivery_tag))

        channel.basic_consume("preferred", on_message, arguments=arguments)
        channels[name] = channel

    def after(numbers):
        """What each has received, once all of these have come."""
        for number in numbers:
            publisher.basic_publish("", "preferred", b"%d" % number)
        expected = 1 + max(numbers)
        end = time.monotonic() + 10
        while sum(map(len, received.values())) < expected and time.monotonic() < end:
            connection.process_data_events(0.05)
        return {name: b"".join(body for body, _ in found) for name, found in received.items()}

    found = after(range(6))
    assert found == {"high": b"01", "none": b"23", "low": b"45"}, found
    # Whoever can take one again is before those of lower priority, also when these can.
    for name in ("low", "high"):
        channels[name].basic_ack(received[name][0][1])
    # Each channel's acknowledgement is before what it asks next.
    for name in ("low", "high"):
        channels[name].queue_declare("preferred", passive=True)
    found = after([6])
    assert found == {"high": b"016", "none": b"23", "low": b"45"}, found
    found = after([7])
    assert found == {"high": b"016", "none": b"23", "low": b"457"}, found
    channel = connection.channel()
    try:
        channel.basic_consume("preferred", lambda *_: None, arguments={"x-priority": "high"})
    except pika.exceptions.ChannelClosedByBroker as error:
        assert error.reply_code == 406 and "x-priority" in error.reply_text, error
    else:
        raise AssertionError("a priority that is no number was taken")
    connection.close()


def mandatory_messages_come_back():
    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        channel.basic_publish("amq.direct", "nowhere", b"x", mandatory=True)
    except pika.exceptions.UnroutableError as error:
        returned = error.messages[0]
        assert returned.method.reply_code == 312 and returned.body == b"x"
    else:
        raise AssertionError("an unroutable message was taken")
    channel.basic_publish("amq.direct", "nowhere", b"x")
    connection.close()


def a_deleted_queue_cancels_its_consumer():
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("doomed", durable=True)
    cancelled = []
    channel.add_on_cancel_callback(cancelled.append)
    channel.basic_consume("doomed", lambda *_: None)
    other = connection.channel()
    other.queue_delete("doomed")
    end = time.monotonic() + 10
    while not cancelled and time.monotonic() < end:
        connection.process_data_events(0.1)
    assert cancelled, "nothing was said"
    connection.close()


def what_a_lost_connection_held_comes_back():
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("kept", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "kept", b"x", pika.BasicProperties(delivery_mode=2))
    child = os.fork()
    if child == 0:
        got = connect().channel().basic_get("kept")[2]
        os._exit(0 if got == b"x" else 1)
    assert os.waitpid(child, 0)[1] == 0, "the other process got nothing"
    method, _, body = get_soon(channel, "kept")
    assert body == b"x" and method.redelivered
    channel.basic_ack(method.delivery_tag)
    connection.close()


def a_refused_request_closes_its_channel_only():
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("fixed", durable=True, arguments={"x-message-ttl": 1000})
    try:
        channel.queue_declare("fixed", durable=True, arguments={"x-message-ttl": 2000})
    except pika.exceptions.ChannelClosedByBroker as error:
        assert error.reply_code == 406, error
        assert "inequivalent arg 'x-message-ttl' for queue 'fixed'" in error.reply_text, error
    else:
        raise AssertionError("another TTL was taken")
    channel = connection.channel()
    try:
        channel.queue_declare("missing", passive=True)
    except pika.exceptions.ChannelClosedByBroker as error:
        assert error.reply_code == 404, error
    else:
        raise AssertionError("a queue was found that is not there")
    assert connection.is_open
    connection.close()


def exchanges_route():
    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    for kind in ("fanout", "topic", "headers"):
        channel.exchange_declare(f"x-{kind}", kind, durable=True)
        channel.queue_declare(f"q-{kind}", durable=True)
    channel.queue_bind("q-fanout", "x-fanout")
    channel.queue_bind("q-topic", "x-topic", "a.*.c.#")
    channel.queue_bind("q-headers", "x-headers", arguments={"x-match": "any", "h": 1})
    channel.exchange_bind("x-topic", "x-fanout", "#")
    channel.basic_publish("x-fanout", "a.b.c", b"1")
    channel.basic_publish("x-topic", "a.b", b"2")
    channel.basic_publish("x-topic", "a.b.c.d", b"3")
    channel.basic_publish("x-headers", "", b"4", pika.BasicProperties(headers={"h": 1}))
    channel.basic_publish("x-headers", "", b"5", pika.BasicProperties(headers={"h": "1"}))
    assert drain(channel, "q-fanout") == [b"1"]
    assert drain(channel, "q-topic") == [b"1", b"3"]
    assert drain(channel, "q-headers") == [b"4"]
    connection.close()


def turns_by_a_header():
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("shared", durable=True, arguments={"x-fairness-key": "tenant"})
    channel.confirm_delivery()
    long = "x" * 70_000
    for tenant in ("big", "big", "big", "small", long, long + "y"):
        properties = pika.BasicProperties(headers={"tenant": tenant}, delivery_mode=2)
        channel.basic_publish("", "shared", tenant[:5].encode(), properties)
    order = drain(channel, "shared")
    assert order == [b"big", b"small", b"xxxxx", b"big", b"xxxxx", b"big"], order
    connection.close()


def a_wrong_password_is_refused():
    credentials = pika.PlainCredentials("guest", "wrong")
    try:
        connect(credentials=credentials)
    except pika.exceptions.ProbableAuthenticationError:
        return
    raise AssertionError("a wrong password was taken")


def transactions():
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("booked", durable=True)
    channel.tx_select()
    channel.basic_publish("", "booked", b"no")
    channel.tx_rollback()
    channel.basic_publish("", "booked", b"yes")
    assert channel.basic_get("booked")[0] is None
    channel.tx_commit()
    other = connection.channel()
    assert drain(other, "booked") == [b"yes"]
    connection.close()


globals()[sys.argv[2]]()
