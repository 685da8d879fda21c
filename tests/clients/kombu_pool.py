"""What Kombu sees of the broker: `kombu_pool.py PORT CHECK`."""

import sys

from kombu import Connection, Consumer, Exchange, Producer, Queue

PORT = sys.argv[1]


def publishes_and_consumes():
    exchange = Exchange("media", "topic", durable=True)
    queue = Queue("video", exchange, routing_key="video.#", max_priority=3)
    with Connection(f"amqp://guest:guest@127.0.0.1:{PORT}//", confirm_publish=True) as connection:
        producer = Producer(connection.channel(), exchange=exchange)
        for number in range(10):
            producer.publish(
                {"number": number},
                routing_key="video.new",
                declare=[queue],
                priority=number % 4,
                retry=True,
            )
        received = []

        def on_message(body, message):
            received.append(body["number"])
            message.ack()

        with Consumer(connection, queues=[queue], callbacks=[on_message], prefetch_count=1):
            while len(received) < 10:
                connection.drain_events(timeout=30)
        assert received == [3, 7, 2, 6, 1, 5, 9, 0, 4, 8], received


globals()[sys.argv[2]]()
