"""aio-pika: `aio_pika_client.py PORT CHECK`."""

import asyncio
import types

import aio_pika

import asyncio_checks


class Connection:
    @classmethod
    async def open(cls, port):
        self = cls()
        self.connection = await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{port}/")
        self.channel = await self.connection.channel(on_return_raises=True)
        self.cancelled = asyncio.Event()
        channel = await self.channel.get_underlay_channel()
        channel.on_consumer_cancel_callbacks.add(lambda _frame: self.cancelled.set())
        return self

    async def queue(self, name, arguments=None):
        await self.channel.declare_queue(name, durable=True, arguments=arguments)

    async def exchange(self, name, kind):
        await self.channel.declare_exchange(name, kind, durable=True)

    async def bind(self, queue, exchange, key):
        await (await self.channel.get_queue(queue)).bind(exchange, key)

    async def delete(self, queue):
        await self.channel.queue_delete(queue)

    async def publish(self, exchange, key, body, headers=None, priority=None, mandatory=False):
        message = aio_pika.Message(body, headers=headers, priority=priority, delivery_mode=2)
        target = self.channel.default_exchange
        if exchange:
            target = await self.channel.get_exchange(exchange)
        try:
            await target.publish(message, key, mandatory=mandatory)
        except aio_pika.exceptions.PublishError:
            return False
        return True

    async def get(self, queue):
        found = await (await self.channel.get_queue(queue)).get(fail=False)
        return found and message_of(found)

    async def consume(self, queue, prefetch):
        await self.channel.set_qos(prefetch)
        messages = asyncio.Queue()
        queue = await self.channel.get_queue(queue)

        async def on_message(message):
            messages.put_nowait(message_of(message))

        await queue.consume(on_message)
        return messages

    async def ack(self, message):
        await message.tag.ack()

    async def reject(self, message, requeue):
        await message.tag.nack(requeue=requeue)

    async def close(self):
        await self.connection.close()

    # It does not let go of its socket.
    abort = close


def message_of(message):
    return types.SimpleNamespace(
        body=message.body, headers=message.headers, redelivered=message.redelivered, tag=message
    )


asyncio_checks.main(Connection.open)
