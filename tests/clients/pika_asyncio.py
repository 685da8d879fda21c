"""pika's asyncio connection: `pika_asyncio.py PORT CHECK`."""

import asyncio
import types

import pika
from pika.adapters.asyncio_connection import AsyncioConnection

import asyncio_checks


def future():
    return asyncio.get_running_loop().create_future()


class Connection:
    @classmethod
    async def open(cls, port):
        self = cls()
        opened = future()
        self.ended = future()

        def on_error(_connection, error):
            opened.set_exception(error)

        AsyncioConnection(
            pika.ConnectionParameters("127.0.0.1", port),
            on_open_callback=opened.set_result,
            on_open_error_callback=on_error,
            on_close_callback=lambda *_: self.ended.set_result(None),
        )
        self.connection = await opened
        opened = future()
        self.connection.channel(on_open_callback=opened.set_result)
        self.channel = await opened
        self.cancelled = asyncio.Event()
        self.channel.add_on_cancel_callback(lambda _frame: self.cancelled.set())
        self.unconfirmed = {}
        self.returned = set()
        self.channel.add_on_return_callback(self.on_return)
        selected = future()
        self.channel.confirm_delivery(self.on_confirm, callback=selected.set_result)
        await selected
        return self

    def on_return(self, _channel, _method, properties, _body):
        self.returned.add(properties.message_id)

    def on_confirm(self, frame):
        method = frame.method
        assert isinstance(method, pika.spec.Basic.Ack), method
        last = method.delivery_tag
        tags = [tag for tag in self.unconfirmed if tag <= last] if method.multiple else [last]
        for tag in tags:
            self.unconfirmed.pop(tag).set_result(str(tag) not in self.returned)

    async def call(self, method, *arguments, **named):
        done = future()
        method(*arguments, **named, callback=done.set_result)
        return await done

    async def queue(self, name, arguments=None):
        await self.call(self.channel.queue_declare, name, durable=True, arguments=arguments)

    async def exchange(self, name, kind):
        await self.call(self.channel.exchange_declare, name, kind, durable=True)

    async def bind(self, queue, exchange, key):
        await self.call(self.channel.queue_bind, queue, exchange, key)

    async def delete(self, queue):
        await self.call(self.channel.queue_delete, queue)

    async def publish(self, exchange, key, body, headers=None, priority=None, mandatory=False):
        self.sent = getattr(self, "sent", 0) + 1
        confirmed = self.unconfirmed[self.sent] = future()
        properties = pika.BasicProperties(
            headers=headers, priority=priority, message_id=str(self.sent), delivery_mode=2
        )
        self.channel.basic_publish(exchange, key, body, properties, mandatory)
        return await confirmed

    async def get(self, queue):
        found = future()

        def on_message(_channel, method, properties, body):
            found.set_result(message_of(method, properties, body))

        def on_empty(_frame):
            # Stays registered until the next empty queue.
            if not found.done():
                found.set_result(None)

        self.channel.add_callback(on_empty, [pika.spec.Basic.GetEmpty], one_shot=True)
        self.channel.basic_get(queue, callback=on_message)
        return await found

    async def consume(self, queue, prefetch):
        await self.call(self.channel.basic_qos, prefetch_count=prefetch)
        messages = asyncio.Queue()

        def on_message(_channel, method, properties, body):
            messages.put_nowait(message_of(method, properties, body))

        await self.call(self.channel.basic_consume, queue, on_message)
        return messages

    async def ack(self, message):
        self.channel.basic_ack(message.tag)

    async def reject(self, message, requeue):
        self.channel.basic_nack(message.tag, requeue=requeue)

    async def abort(self):
        # With an answer to this the broker has seen what was written before.
        await self.call(self.channel.basic_qos)
        self.connection._transport.abort()

    async def close(self):
        self.connection.close()
        await self.ended


def message_of(method, properties, body):
    return types.SimpleNamespace(
        body=body,
        headers=properties.headers,
        redelivered=method.redelivered,
        tag=method.delivery_tag,
    )


asyncio_checks.main(Connection.open)
