"""Who connects to a run's ports and does not belong to it: at length, what
tests/multi_rank/strangers_test shows briefly, and with memory and replays.

They find every port that the run's processes listen on and come to it, in
several ways at once, until they are told to go. They know the run's token, to
make what a recording of it would be, but prove nothing with it that is true.
"""
import glob
import hashlib
import hmac
import os
import random
import socket
import struct
import threading
import time

STORE_MAGIC = b"HTSTORE1"
NONCE = 16
# Counted when they were heard, not when they came: what they say depends on what
# the other end said.
HEARD = ["replay", "wrong secret", "peer replay"]
KINDS = ["rubbish", "slow", "flood", "endless", "replay", "wrong secret",
         "peer replay", "peer wrong secret"]


def proof(token, *words):
    return hmac.new(token, b"".join(words), hashlib.sha256).digest()


def text(value):
    return struct.pack("<I", len(value)) + value


def store_hello(token, server_nonce, rank, world):
    """As a rank says it; docs/formats.md has no wire format: it may change."""
    nonce = os.urandom(NONCE)
    message = (b"\1" + struct.pack("<qqq", rank, world, 0) + b"\1" +
               text(b"pid 1 on nowhere") + text(nonce) +
               text(proof(token, b"client %d " % rank, server_nonce, nonce)))
    return struct.pack("<I", len(message)) + message


def peer_hello(token, caller, called):
    words = b"HTPEER02%08d%08d" % (caller, called) + os.urandom(NONCE)
    return words + proof(token, b"peer calling ", words)


def listeners(pids):
    """(address, port) that these processes listen on."""
    inodes = set()
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/fd/*"):
            try:
                link = os.readlink(path)
            except OSError:
                continue
            if link.startswith("socket:["):
                inodes.add(link[8:-1])
    found = []
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        try:
            with open(f"/proc/net/{table}", encoding="ascii") as file:
                lines = list(file)[1:]
        except OSError:
            continue  # a machine without IPv6
        for line in lines:
            words = line.split()
            if words[3] != "0A" or words[9] not in inodes:
                continue
            address, port = words[1].split(":")
            parts = [int(address[i:i + 8], 16)
                     for i in range(0, len(address), 8)]
            found.append((socket.inet_ntop(
                family, struct.pack(f"={len(parts)}I", *parts)), int(port, 16)))
    return found


class Strangers:
    """Of a run whose processes `pids()` names, while the context lasts."""

    def __init__(self, pids, token, world, seed):
        self.pids, self.token, self.world = pids, token, world
        self.came = dict.fromkeys(KINDS, 0)
        self.admitted = []
        self.open_to_all = set()  # addresses besides the loopback
        self.ports = []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.look)]
        for number, kind in enumerate(KINDS):
            self.threads.append(threading.Thread(
                target=self.come, args=(kind, random.Random(seed + number))))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def look(self):
        while not self.over.is_set():
            self.ports = listeners(self.pids())
            self.open_to_all |= {address for address, _ in self.ports
                                 if not address.startswith("127.")
                                 and address != "::1"}
            time.sleep(0.02)

    def come(self, kind, draw):
        visit = getattr(self, kind.replace(" ", "_"))
        while not self.over.is_set():
            ports = self.ports
            if not ports:
                time.sleep(0.005)
                continue
            try:
                with socket.create_connection(draw.choice(ports), 1) as one:
                    one.settimeout(1)
                    if kind not in HEARD:
                        self.came[kind] += 1
                    visit(one, draw)
            except OSError:
                pass  # it was shown out
            # The run has the machine for itself most of the time.
            time.sleep(0.002)

    # ---- Each is one visit.

    def rubbish(self, one, draw):
        one.sendall(draw.randbytes(draw.choice([0, 1, 4, 60, 3000])))
        one.recv(4096)

    def slow(self, one, draw):
        """A byte of what a rank would say, now and then."""
        hello = store_hello(self.token, bytes(NONCE), 0, self.world)
        for byte in hello[:draw.randint(1, 40)]:
            one.sendall(bytes([byte]))
            if self.over.wait(0.02):
                return

    def flood(self, one, draw):
        """As many at once as a listener lets wait."""
        held = []
        try:
            for _ in range(draw.randint(1, 700)):
                other = socket.socket()
                other.setblocking(False)
                held.append(other)
                other.connect_ex(one.getpeername())
                self.came["flood"] += 1
            self.over.wait(0.05)
        finally:
            for other in held:
                other.close()

    def endless(self, one, draw):
        length = draw.choice([1000, 2 ** 20, 2 ** 32 - 1])
        one.sendall(struct.pack("<I", length))
        for _ in range(200):
            one.sendall(bytes(65536))

    def greet(self, one, kind, hello):
        """What is said to the store; it may not admit who says it."""
        one.sendall(hello)
        self.came[kind] += 1
        head = one.recv(4)
        reply = one.recv(4096) if len(head) == 4 else b""
        if reply[:1] == b"\0":
            self.admitted.append(kind)

    def store_nonce(self, one):
        greeting = one.recv(len(STORE_MAGIC) + NONCE)
        if not greeting.startswith(STORE_MAGIC):
            raise OSError("no store")
        return greeting[len(STORE_MAGIC):]

    def replay(self, one, draw):
        """A hello that was true on another connection."""
        self.store_nonce(one)
        self.greet(one, "replay",
                   store_hello(self.token, os.urandom(NONCE),
                               draw.randrange(self.world), self.world))

    def wrong_secret(self, one, draw):
        nonce = self.store_nonce(one)
        token = bytes([self.token[0] ^ 1]) + self.token[1:]
        self.greet(one, "wrong secret",
                   store_hello(token, nonce, draw.randrange(self.world),
                               self.world))

    def greet_peer(self, one, kind, hello):
        one.sendall(hello)
        answer = b""
        while len(answer) < NONCE + 32:
            more = one.recv(NONCE + 32 - len(answer))
            if not more:
                return
            answer += more
        if answer.startswith(STORE_MAGIC):
            return
        self.came[kind] += 1
        # The other end wants a proof over its nonce: a recording has none.
        one.sendall(os.urandom(32))
        if one.recv(1) == b"+":
            self.admitted.append(kind)

    def peer_replay(self, one, draw):
        to = draw.randrange(self.world)
        self.greet_peer(one, "peer replay", peer_hello(
            self.token, draw.randrange(self.world), to))

    def peer_wrong_secret(self, one, draw):
        self.greet_peer(one, "peer wrong secret", peer_hello(
            b"not " + self.token, self.world - 1, draw.randrange(self.world)))
