"""Two nodes on one machine: network namespaces that a cable joins."""
import os
import subprocess
import time


class TwoNodes:
    """Needs root, unshare, nsenter and ip."""

    def __init__(self):
        self.holders = [subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
                        for _ in range(2)]
        own = os.readlink("/proc/self/ns/net")
        for node in range(2):
            while self.net_of(self.holders[node].pid) == own:
                if self.holders[node].poll() is not None:
                    raise SystemExit("no network namespaces are permitted here")
                time.sleep(0.01)
        self.ip(0, "link", "add", "cable", "type", "veth", "peer", "name",
                "cable", "netns", str(self.holders[1].pid))
        for node in range(2):
            self.ip(node, "link", "set", "lo", "up")
            self.ip(node, "address", "add", f"{self.address(node)}/24", "dev",
                    "cable")
            self.ip(node, "link", "set", "cable", "up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for holder in self.holders:
            holder.kill()
            holder.wait()

    @staticmethod
    def address(node):
        return f"10.217.0.{node + 1}"

    @staticmethod
    def net_of(pid):
        """Which network a process is in; none where there is no process."""
        try:
            return os.readlink(f"/proc/{pid}/ns/net")
        except OSError:
            return None

    def on(self, node):
        """What a command begins with that is to run on that node."""
        return ["nsenter", f"--net=/proc/{self.holders[node].pid}/ns/net"]

    def ip(self, node, *words):
        subprocess.run([*self.on(node), "ip", *words], check=True)

    def plug(self, state):
        """The cable: "up" or "down"."""
        self.ip(0, "link", "set", "cable", state)

    def has(self, node, pid):
        return self.net_of(pid) == self.net_of(self.holders[node].pid)
