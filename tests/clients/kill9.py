"""Brokers that are killed while clients of AMQP and FireMQ publish and consume: `kill9.py - CHECK`.

Starts its own broker (`TANDA` in the environment) and kills it with SIGKILL, some times. Each time:
whatever was confirmed and never acknowledged is there exactly once, nothing is there twice, and what
a consumer had received says that it was delivered before, also the newest.
"""

import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading

import pika

from fire import Closed, Fire, FireError

ROUNDS = 4
WINDOW = 100
CREDIT = 50
GONE = (Closed, FireError, OSError, pika.exceptions.AMQPError, AssertionError)
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Broker:
    def __init__(self, data_dir):
        free = "127.0.0.1:0"
        doors = ["--no-fila", "--no-amaquet", "--no-http", "--amqp", free, "--firemq", free]
        command = [os.environ["TANDA"], "serve", *doors, "--data-dir", data_dir]
        self.process = subprocess.Popen(
            [*command, "--log-level", "error"], stdout=subprocess.PIPE, text=True
        )
        self.ports = {}
        for line in self.process.stdout:
            if line.startswith("ready in "):
                return
            door, addr = line.strip().split(" listening on ")
            self.ports[door] = int(addr.rsplit(":", 1)[1])
        raise AssertionError("the broker did not start")

    def fire(self):
        return Fire(f"fire://127.0.0.1:{self.ports['firemq']}")

    def amqp(self):
        parameters = pika.ConnectionParameters("127.0.0.1", self.ports["amqp"])
        return pika.BlockingConnection(parameters)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Ledger:
    """What the clients of one round know."""

    def __init__(self):
        self.lock = threading.Lock()
        self.confirmed = set()
        self.received = collections.defaultdict(list)
        self.acked = set()
        self.enough = threading.Event()
        self.target = random.randrange(500, 5000)

    def confirm(self, bodies):
        with self.lock:
            self.confirmed.update(bodies)
            if len(self.confirmed) >= self.target:
                self.enough.set()


def until_it_is_gone(work):
    """A thread that goes on until the broker is killed; other errors count."""

    def run(broker, ledger, name):
        try:
            work(broker, ledger, name)
        except GONE as error:
            if not ledger.enough.is_set():
                ledger.failure = error
                ledger.enough.set()

    return run


@until_it_is_gone
def publish_by_fire(broker, ledger, name):
    fire = broker.fire()
    waiting = {}
    number = 0
    while True:
        while len(waiting) < WINDOW:
            body = b"%s-%d" % (name, number)
            exchange, key = (("", "load"), ("amq.topic", "load.x"))[number % 2]
            waiting[fire.publish(exchange, key, body, persistent=True)] = body
            number += 1
        fire.step()
        done = [seq for seq in waiting if seq not in fire.unsettled]
        assert not fire.nacked, fire.nacked
        ledger.confirm(waiting.pop(seq) for seq in done)


@until_it_is_gone
def publish_by_amqp(broker, ledger, name):
    channel = broker.amqp().channel()
    channel.confirm_delivery()
    number = 0
    while True:
        body = b"%s-%d" % (name, number)
        exchange, key = (("", "load"), ("amq.topic", "load.x"))[number % 2]
        channel.basic_publish(exchange, key, body, PERSISTENT, mandatory=True)
        ledger.confirm([body])
        number += 1


@until_it_is_gone
def consume_by_fire(broker, ledger, name):
    fire = broker.fire()
    fire.subscribe(1, "load", CREDIT)
    while True:
        frame = fire.next()
        with ledger.lock:
            ledger.received[name].append(frame.payload)
        if random.random() < 0.5:
            with ledger.lock:
                ledger.acked.add(frame.payload)
            fire.ack(frame)
            fire.grant(1, 1)


@until_it_is_gone
def consume_by_amqp(broker, ledger, name):
    channel = broker.amqp().channel()
    channel.basic_qos(prefetch_count=CREDIT)

    def on_message(ch, method, _properties, body):
        with ledger.lock:
            ledger.received[name].append(body)
        if random.random() < 0.5:
            with ledger.lock:
                ledger.acked.add(body)
            ch.basic_ack(method.delivery_tag)

    channel.basic_consume("load", on_message)
    channel.start_consuming()


def draw_seed():
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print("SEED", seed, file=sys.stderr)
    random.seed(seed)


def confirmed_messages_survive():
    draw_seed()
    with tempfile.TemporaryDirectory(prefix="tanda-kill9-") as data_dir:
        for turn in range(ROUNDS):
            round_of_load(data_dir, turn)


def round_of_load(data_dir, turn):
    broker = Broker(data_dir)
    ledger = Ledger()
    fire = broker.fire()
    fire.queue("load")
    fire.ask("bind", exchange="amq.topic", queue="load", key="load.*")
    workers = [publish_by_fire, publish_by_fire, publish_by_amqp, publish_by_amqp]
    workers += [consume_by_fire, consume_by_amqp]
    threads = []
    for number, work in enumerate(workers):
        arguments = (broker, ledger, b"%d-%d" % (turn, number))
        threads.append(threading.Thread(target=work, args=arguments))
        threads[-1].start()
    assert ledger.enough.wait(120), "too few confirms"
    broker.kill()
    for thread in threads:
        thread.join()
    assert not hasattr(ledger, "failure"), ledger.failure
    broker = Broker(data_dir)
    try:
        check(broker, ledger)
    finally:
        broker.kill()


def check(broker, ledger):
    fire = broker.fire()
    found = collections.Counter()
    redelivered = set()
    while (frame := fire.get("load")) is not None:
        found[frame.payload] += 1
        if frame.header.get("redelivered"):
            redelivered.add(frame.payload)
        fire.ack(frame)
    fire.settle()
    kept = ledger.confirmed - ledger.acked
    received = sum(map(len, ledger.received.values()))
    counts = len(ledger.confirmed), received, len(ledger.acked), len(found)
    print("confirmed %d, received %d, acknowledged %d, found %d" % counts, file=sys.stderr)
    lost = kept - set(found)
    assert not lost, f"{len(lost)} of {len(kept)} are lost, {min(lost)} is one"
    twice = [body for body, count in found.items() if count > 1]
    assert not twice, f"{len(twice)} came twice, {twice[0]} is one"
    seen = {body for bodies in ledger.received.values() for body in bodies}
    fresh = (seen & set(found)) - redelivered
    assert not fresh, f"{len(fresh)} were received and are not redelivered, {min(fresh)} is one"
    fire.close()


def what_was_received_is_redelivered():
    """Of a backlog: nothing that is delivered waits for the disk."""
    draw_seed()
    with tempfile.TemporaryDirectory(prefix="tanda-kill9-") as data_dir:
        for turn in range(2 * ROUNDS):
            broker = Broker(data_dir)
            channel = broker.amqp().channel()
            channel.queue_declare("backlog", durable=True)
            channel.confirm_delivery()
            for number in range(200):
                channel.basic_publish("", "backlog", b"%d-%d" % (turn, number), PERSISTENT)
            received = set()
            fire = broker.fire()
            fire.subscribe(1, "backlog", CREDIT)
            for _ in range(random.randrange(60, 180)):
                frame = fire.next()
                received.add(frame.payload)
                # What is written for this is on its way when the next one comes.
                if random.random() < 0.9:
                    fire.ack(frame)
                fire.grant(1, 1)
            broker.kill()
            # What had come before the end.
            received.update(frame.payload for frame in fire.deliveries)
            broker = Broker(data_dir)
            try:
                fresh = set()
                fire = broker.fire()
                while (frame := fire.get("backlog")) is not None:
                    if frame.payload in received and not frame.header.get("redelivered"):
                        fresh.add(frame.payload)
                    fire.ack(frame)
                fire.close()
                assert not fresh, f"{len(fresh)} of {len(received)} received seem new"
            finally:
                broker.kill()


globals()[sys.argv[2]]()
