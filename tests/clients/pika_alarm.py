"""What pika sees of a broker that runs short of memory: `pika_alarm.py PORT CHECK`.

Delayed messages stay in memory, so enough of them raise the alarm.
"""

import sys
import time

import pika

PORT = int(sys.argv[1])
# Many times what a memory limit of 8 MiB has room for.
MESSAGES_MAX = 1_000_000
# A publisher that waits hears of it and of its end within this.
SECONDS_MAX = 60


def connect():
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", PORT))


def wait_for(connection, condition, what):
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, what
        connection.process_data_events(0.1)


def publishers_wait():
    publisher = connect()
    told = []
    publisher.add_on_connection_blocked_callback(
        lambda _, frame: told.append(frame.method.reason)
    )
    publisher.add_on_connection_unblocked_callback(lambda _, frame: told.append("over"))
    channel = publisher.channel()
    for queue in ("later", "now"):
        channel.queue_declare(queue, durable=True)
    channel.basic_publish("", "now", b"before")
    in_an_hour = pika.BasicProperties(headers={"x-delay": 3_600_000})
    for number in range(MESSAGES_MAX):
        channel.basic_publish("", "later", b"", in_an_hour)
        if number % 500 == 0:
            publisher.process_data_events(0)
        if told:
            break
    assert told == ["low on memory"], told

    # A publisher that comes now waits from its first message on; a consumer goes on.
    other = connect()
    other_told = []
    other.add_on_connection_blocked_callback(lambda _, frame: other_told.append("waits"))
    other.channel().basic_publish("", "now", b"meanwhile")
    wait_for(other, lambda: other_told, "the second publisher heard nothing")
    consumer = connect()
    consuming = consumer.channel()
    assert consuming.basic_get("now", auto_ack=True)[2] == b"before"
    assert consuming.basic_get("now", auto_ack=True)[0] is None

    consuming.queue_delete("later")
    wait_for(publisher, lambda: len(told) == 2, "the publisher waits for ever")
    assert told == ["low on memory", "over"], told
    bodies = []

    def arrived():
        body = consuming.basic_get("now", auto_ack=True)[2]
        if body is not None:
            bodies.append(body)
        return bodies

    wait_for(consumer, arrived, "what waited did not come")
    assert bodies == [b"meanwhile"], bodies
    assert channel.is_open
    for connection in (publisher, other, consumer):
        connection.close()


{"publishers_wait": publishers_wait}[sys.argv[2]]()
