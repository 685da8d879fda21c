"""What FireMQ clients see of a broker that runs short of memory: `fire_alarm.py URL CHECK`.

Delayed messages stay in memory, so enough of them raise the alarm.
"""

import sys

from fire import Fire

URL = sys.argv[1]
# Many times what a memory limit of 8 MiB has room for.
ROUNDS_MAX = 5000


def publishers_wait():
    fire = Fire(URL)
    for queue in ("later", "now"):
        fire.queue(queue)
    fire.publish("", "now", b"before")
    refused = fire.confirmed()
    assert refused == {}, refused
    in_an_hour = {"x-delay": 3_600_000}
    for _ in range(ROUNDS_MAX):
        for _ in range(200):
            fire.publish("", "later", b"", headers=in_an_hour)
        fire.until(lambda: fire.flows or not fire.unsettled, "confirms or a pause")
        if fire.flows:
            break
    assert fire.flows == [True], fire.flows

    # Who comes now is told as well; who ignores it is not read from its first message on.
    other = Fire(URL)
    other.until(lambda: other.flows, "the pause")
    other.publish("", "now", b"meanwhile")
    consumer = Fire(URL)
    frame = consumer.get("now")
    assert frame.payload == b"before", frame
    consumer.ack(frame)
    assert consumer.get("now") is None
    consumer.subscribe(1, "now", 10)

    consumer.ask("delete_queue", name="later")
    for waiting in (fire, other):
        waiting.until(lambda: waiting.flows[-1] is False, "the end of the pause")
    assert fire.flows == [True, False] and other.flows == [True, False]
    frame = consumer.next()
    assert frame.payload == b"meanwhile", frame
    consumer.ack(frame)
    refused = other.confirmed()
    assert refused == {}, refused
    # What waited of the first one's messages goes on, to a queue that is gone.
    refused = fire.confirmed()
    assert refused == {}, refused
    for connection in (fire, other, consumer):
        connection.close()


globals()[sys.argv[2]]()
