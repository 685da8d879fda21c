"""`tanda amaquet` on a terminal of its own: `amaquet_shell.py PORT CHECK`.

`TANDA` in the environment is the binary. What is on the screen is what was written since a moment,
without the sequences that move the cursor and colour.
"""

import contextlib
import os
import pty
import re
import select
import signal
import socket
import stat
import sys
import tempfile
import termios
import threading
import time

from amaquet import Amaquet, text

PORT = int(sys.argv[1])
PATIENCE = 20
PROMPT = "amaquet> "
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x00-\x08\x0b-\x1a\x1c-\x1f]")


class Terminal:
    """The program on a pseudo-terminal."""

    def __init__(self, home, *arguments, port=PORT):
        self.process, self.file = pty.fork()
        if self.process == 0:
            environment = {
                "PATH": os.environ["PATH"],
                "TERM": "xterm",
                "HOME": home,
                "TANDA_AMAQUET": f"127.0.0.1:{port}",
            }
            os.execve(os.environ["TANDA"], ["tanda", "amaquet", *arguments], environment)
        self.screen = ""
        self.status = None

    def type(self, keys):
        """Presses keys; what is on the screen before them is seen."""
        self.screen = ""
        os.write(self.file, keys.encode())

    def read(self, timeout):
        ready, _, _ = select.select([self.file], [], [], timeout)
        if not ready:
            return False
        try:
            more = os.read(self.file, 1 << 16)
        except OSError:
            more = b""
        self.screen += ESCAPES.sub("", more.decode(errors="replace"))
        return bool(more)

    def until(self, wanted, timeout=PATIENCE):
        """Waits until a text, or what fits a pattern, is on the screen."""
        end = time.monotonic() + timeout
        found = wanted.search if isinstance(wanted, re.Pattern) else lambda it: wanted in it
        while not found(self.screen):
            left = end - time.monotonic()
            assert left > 0 and self.read(left), f"no {wanted!r} in {self.screen!r}"
        return self.screen

    def at_prompt(self):
        """Waits until the prompt of another line is there: keys before it may be lost."""
        return self.until(re.compile(r"\n(?s:.*)" + re.escape(PROMPT) + "$"))

    def begin(self, line):
        """Types a line, and waits until it is taken: the terminal reads no single keys then."""
        self.type(line + "\r")
        self.until(re.compile(r"\n"))
        soon(lambda: termios.tcgetattr(self.file)[3] & termios.ICANON, "a command that runs")

    def run(self, line):
        """Types a line, and returns what is on the screen at the next prompt."""
        self.type(line + "\r")
        # The line is echoed behind its own prompt; the answer ends with another one.
        return self.at_prompt()

    def ended(self):
        """Waits for the end of the program; its exit code."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read(0.05)
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it goes on: {self.screen!r}")


def opened(home, *arguments, **named):
    terminal = Terminal(home, *arguments, **named)
    terminal.at_prompt()
    return terminal


def soon(found, what):
    end = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def commands_are_typed(home):
    terminal = opened(home)
    assert "`help`" in terminal.screen, terminal.screen
    assert '{"version":' in terminal.run("value.set greeting 'hello you'")
    assert '"data":"hello you"' in terminal.run("value.get key=greeting")
    assert '{"value":5}' in terminal.run("counter.add typed by=5")
    # What went wrong, and what to do.
    assert "did you mean value.get?" in terminal.run("value.gte a")
    assert "misses value" in terminal.run("value.set a")
    wrong = terminal.run("counter.get greeting")
    assert "WRONG_TYPE" in wrong and "key.kind" in wrong, wrong
    assert "NOT_FOUND" in terminal.run("value.get nothing")
    # JSON may go on in the next line.
    terminal.type('value.set doc {"a":\r')
    terminal.until("\n")
    assert '{"version":' in terminal.run("[1, 2]}")
    assert '{"a":' in terminal.run("value.get doc")
    # What could change the terminal is escaped.
    Amaquet(PORT).call("value.set", key="evil", value=text("\x1b]0;x\x07\u202e\x9b"))
    shown = terminal.run("value.get evil")
    assert "\\u202e" in shown and "\\u009b" in shown and "\u202e" not in shown, shown
    assert "queue.push" in terminal.run("help queue")
    assert "visibility_timeout_ms" in terminal.run("help queue.create")
    status = terminal.run("status")
    assert "public key" in status and "anonymous" in status, status
    terminal.type("exit\r")
    assert terminal.ended() == 0


def tab_completes(home):
    Amaquet(PORT).call("value.set", key="tab:only-one", value=1)
    terminal = opened(home)
    terminal.type("val\tge\t")
    # The arguments to come are shown behind the cursor.
    terminal.until("value.get")
    terminal.until("key=")
    terminal.type("\x15")
    terminal.type("value.get tab:\t")
    terminal.until("tab:only-one")
    terminal.type("\r")
    terminal.until('"data":1')
    terminal.at_prompt()
    terminal.type("list.push tab:list x side=f\t\r")
    terminal.until('{"length":1}')
    terminal.at_prompt()
    terminal.type("\x04")
    assert terminal.ended() == 0


def ctrl_c_cancels_what_runs(home):
    terminal = opened(home)
    terminal.begin("list.pop jobs wait_ms=1m")
    other = Amaquet(PORT)
    terminal.type("\x03")
    terminal.until("CANCELLED")
    terminal.at_prompt()
    # It is cancelled in the broker too.
    other.call("list.push", key="jobs", values=[1])
    assert other.call("list.length", key="jobs") == {"length": 1}
    # A line that is typed is left, and the shell ends only when asked twice.
    terminal.type("value.get hal\x03")
    terminal.until("Ctrl-C again")
    terminal.at_prompt()
    assert '{"pong":true}' in terminal.run("server.ping")
    terminal.type("\x03")
    terminal.until("Ctrl-C again")
    terminal.at_prompt()
    terminal.type("\x03")
    assert terminal.ended() == 0


def events_are_printed_meanwhile(home):
    terminal = opened(home)
    assert "unsubscribe bus news.#" in terminal.run("subscribe bus news.#")
    other = Amaquet(PORT)
    # While a line is typed, which stays.
    terminal.type("counter.add k")
    terminal.until("counter.add k")
    other.call("pubsub.publish", key="bus", channel="news.a", payload=text("first"))
    terminal.until("first")
    terminal.until("counter.add k")
    terminal.type("ept\r")
    terminal.until('{"value":1}')
    terminal.at_prompt()
    assert other.call("counter.get", key="kept") == {"value": 1}
    # While a command waits.
    terminal.begin("list.pop slow wait_ms=20s")
    other.call("pubsub.publish", key="bus", channel="news.b", payload=text("second"))
    terminal.until("second")
    other.call("list.push", key="slow", values=[7])
    terminal.until('"data":7')
    terminal.at_prompt()
    assert "news.# of bus" in terminal.run("status")
    assert "unsubscribed" in terminal.run("unsubscribe bus news.#")
    soon(lambda: other.call("pubsub.channels", key="bus")["channels"] == [], "no subscription")
    assert "`status` tells" in terminal.run("unsubscribe bus news.#")
    terminal.type("quit\r")
    assert terminal.ended() == 0


def lines_are_kept_for_this_user_only(home):
    terminal = opened(home)
    terminal.run("counter.add remembered")
    terminal.run(" counter.add secret")
    terminal.type("exit\r")
    assert terminal.ended() == 0
    path = os.path.join(home, ".local/state/tanda/amaquet_history")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="utf-8") as file:
        kept = file.read()
    assert "counter.add remembered" in kept and "secret" not in kept, kept
    terminal = opened(home)
    terminal.type("\x1b[A\x1b[A\r")
    terminal.until('{"value":2}')
    terminal.at_prompt()
    terminal.type("\x04")
    assert terminal.ended() == 0


class Relay:
    """A way to the broker that can be cut."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = []
        self.seen = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            ours, _ = self.listener.accept()
            theirs = socket.create_connection(("127.0.0.1", PORT))
            self.pairs.append((ours, theirs))
            for pair in ((ours, theirs), (theirs, ours)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, one, other):
        # Either end may be cut.
        with contextlib.suppress(OSError):
            while more := one.recv(1 << 16):
                self.seen.append(more)
                other.sendall(more)
            other.shutdown(socket.SHUT_WR)

    def cut(self):
        while self.pairs:
            for end in self.pairs.pop():
                # The other end may have gone with the first.
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def a_lost_connection_is_told_and_opened_again(home):
    relay = Relay()
    terminal = opened(home, port=relay.port)
    terminal.run("subscribe lost #")
    relay.cut()
    terminal.until("connection lost")
    terminal.until("connected again")
    assert '{"pong":true}' in terminal.run("server.ping")
    other = Amaquet(PORT)
    other.call("pubsub.publish", key="lost", channel="x", payload=text("after"))
    terminal.until("first after a lost connection")
    # A command whose answer is lost says that it may have taken effect.
    terminal.begin("list.pop lost-list wait_ms=1m")
    soon(lambda: b"lost-list" in b"".join(relay.seen), "the command on its way")
    relay.cut()
    terminal.until("may have taken effect")
    terminal.until("connected again")
    os.kill(terminal.process, signal.SIGTERM)
    assert terminal.ended() == 0


with tempfile.TemporaryDirectory() as folder:
    globals()[sys.argv[2]](folder)
