"""A web page, a pika consumer and a Celery application on one broker: `together.py PORT CHECK`.

The page (docs/examples/firemq.html, run by page.js over the WebSocket in WS) sends orders. A pika
consumer takes them, lets a Celery worker calculate, and publishes the answers, which the page gets.
"""

import os
import subprocess
import sys

import pika

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = sys.argv[1]
os.environ["BROKER_PORT"] = PORT
sys.path.insert(0, HERE)
from celery_app import add  # noqa: E402


def all_three_work():
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", int(PORT))
    )
    channel = connection.channel()
    for queue in ("orders", "answers"):
        channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_app", "worker"]
        + ["--pool", "solo", "--loglevel", "warning", "--without-gossip", "--without-mingle"],
        cwd=HERE,
    )
    page = subprocess.Popen(
        ["node", "--experimental-websocket", os.path.join(HERE, "page.js")]
        + [os.environ["WS"], "orders_and_hears"]
    )
    try:
        for method, _, body in channel.consume("orders", inactivity_timeout=60):
            assert method is not None, "the page ordered nothing for a minute"
            number = int(body)
            answer = add.delay(number, number).get(timeout=60)
            channel.basic_publish("", "answers", b"%d" % answer)
            channel.basic_ack(method.delivery_tag)
            if method.delivery_tag == 3:
                break
        assert page.wait(60) == 0
        connection.close()
    finally:
        for process in (page, worker):
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    globals()[sys.argv[2]]()
