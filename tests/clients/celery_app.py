"""A Celery application with a worker, against the broker: `celery_app.py PORT CHECK`."""

import os
import subprocess
import sys

from celery import Celery

PORT = sys.argv[1] if sys.argv[0].endswith("celery_app.py") else os.environ["BROKER_PORT"]

app = Celery("celery_app", broker=f"amqp://guest:guest@127.0.0.1:{PORT}//", backend="rpc://")
app.conf.update(
    task_acks_late=True,
    task_default_queue="tasks",
    task_ignore_result=False,
    broker_connection_retry_on_startup=True,
)
failed_once = set()


@app.task(name="add")
def add(left, right):
    return left + right


@app.task(name="flaky", bind=True, max_retries=3)
def flaky(self, key):
    if key not in failed_once:
        failed_once.add(key)
        raise self.retry(countdown=0.1)
    return self.request.retries


def a_worker_runs_tasks_and_answers():
    environment = dict(os.environ, BROKER_PORT=PORT)
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_app", "worker"]
        + ["--pool", "solo", "--loglevel", "warning", "--without-gossip", "--without-mingle"],
        cwd=os.path.dirname(os.path.abspath(__file__)),
        env=environment,
    )
    try:
        results = [add.delay(number, 1) for number in range(20)]
        answers = [result.get(timeout=60) for result in results]
        assert answers == list(range(1, 21)), answers
        assert flaky.delay("k").get(timeout=60) == 1
        late = add.apply_async((1, 1), countdown=0.2)
        assert late.get(timeout=60) == 2
    finally:
        worker.terminate()
        worker.wait(60)


if __name__ == "__main__":
    globals()[sys.argv[2]]()
