"""What asyncio clients of AMQP see of the broker; the same for each, which brings its own `connect`.

A connection has `queue`, `exchange`, `bind`, `publish` (false: the message came back), `get`,
`consume` (an asyncio.Queue of messages), `ack`, `reject`, `delete`, `abort` and `close`; a message
has `body`, `redelivered`, `headers` and `tag`.
"""

import asyncio
import sys

PATIENCE = 20


async def soon(connection, queue):
    """The next message, within ten seconds."""
    for _ in range(1000):
        if (message := await connection.get(queue)) is not None:
            return message
        await asyncio.sleep(0.01)
    raise AssertionError(f"nothing came to {queue}")


async def drain(connection, queue):
    bodies = []
    while (message := await connection.get(queue)) is not None:
        await connection.ack(message)
        bodies.append(message.body)
    return bodies


async def publish_confirm_consume(connect):
    connection = await connect()
    await connection.queue("work")
    wanted = [b"%d" % number for number in range(500)]
    headers = {"n": 1, "text": "t", "list": [1, "a"]}
    # All at once: confirms come for many together.
    sent = (connection.publish("", "work", body, headers=headers) for body in wanted)
    assert all(await asyncio.gather(*sent))
    messages = await connection.consume("work", 10)
    found = []
    for _ in wanted:
        message = await asyncio.wait_for(messages.get(), PATIENCE)
        assert message.headers == headers and not message.redelivered
        found.append(message.body)
        await connection.ack(message)
    assert found == wanted
    large = bytes(range(256)) * 4096
    assert await connection.publish("", "work", large)
    message = await asyncio.wait_for(messages.get(), PATIENCE)
    assert message.body == large
    await connection.ack(message)
    await connection.close()


async def settling(connect):
    connection = await connect()
    await connection.queue("again")
    for body in (b"a", b"b", b"c"):
        await connection.publish("", "again", body)
    first, second, third = [await connection.get("again") for _ in range(3)]
    await connection.reject(third, requeue=True)
    await connection.reject(first, requeue=True)
    message = await soon(connection, "again")
    assert message.body == b"a" and message.redelivered
    await connection.ack(message)
    await connection.ack(second)
    await connection.abort()
    connection = await connect()
    message = await soon(connection, "again")
    assert message.body == b"c" and message.redelivered
    await connection.ack(message)
    assert await connection.get("again") is None
    await connection.close()


async def expiry_and_dead_letters(connect):
    connection = await connect()
    await connection.exchange("graves", "direct")
    await connection.queue("dead")
    await connection.bind("dead", "graves", "gone")
    buried = {"x-dead-letter-exchange": "graves", "x-dead-letter-routing-key": "gone"}
    await connection.queue("short", {"x-message-ttl": 50, **buried})
    await connection.publish("", "short", b"late")
    message = await soon(connection, "dead")
    assert message.body == b"late" and message.headers["x-death"][0]["reason"] == "expired"
    await connection.queue("strict", buried)
    await connection.publish("", "strict", b"bad")
    await connection.reject(await soon(connection, "strict"), requeue=False)
    message = await soon(connection, "dead")
    assert message.body == b"bad" and message.headers["x-death"][0]["reason"] == "rejected"
    await connection.close()


async def priority_and_mandatory(connect):
    connection = await connect()
    await connection.queue("ranked", {"x-max-priority": 5})
    for priority in (1, 5, 3, 9, 0):
        await connection.publish("", "ranked", b"%d" % priority, priority=priority)
    assert await drain(connection, "ranked") == [b"5", b"9", b"3", b"1", b"0"]
    assert not await connection.publish("amq.direct", "nowhere", b"x", mandatory=True)
    await connection.bind("ranked", "amq.direct", "somewhere")
    assert await connection.publish("amq.direct", "somewhere", b"x", mandatory=True)
    await connection.close()


async def a_deleted_queue_cancels_its_consumer(connect):
    connection = await connect()
    await connection.queue("doomed")
    await connection.consume("doomed", 1)
    other = await connect()
    await other.delete("doomed")
    await asyncio.wait_for(connection.cancelled.wait(), PATIENCE)
    await other.close()
    await connection.close()


def main(connect):
    port = int(sys.argv[1])
    check = globals()[sys.argv[2]](lambda: connect(port))
    asyncio.run(asyncio.wait_for(check, 60))
