"""The program that ends the commands of a node that was killed. Standard library only, and little of it.

Started as `python -I -S guard_process.py` with the reading end of a pipe as its standard input; the node holds the
other end. The node says `+<leader> <start time>` of each process group that it starts and `-<leader>` of each that is
over, one a line. When the pipe ends, the node has ended: what is still listed is killed. It is one file because it is
started by its path, without our packages on the import path: they would cost more memory than the rest of it.
"""

import os
import signal
import sys

PORTION = 64 * 1024
UNKNOWN = b"0"
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def main(notes: int) -> None:
    for number in _IGNORED:  # a service manager sends them to all of a unit, while the node still stops its commands
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, bytes] = {}
    rest = b""
    while portion := os.read(notes, PORTION):
        *lines, rest = (rest + portion).split(b"\n")  # what the node's end cut off is no line
        for line in lines:
            leader, _, started = line[1:].partition(b" ")
            if line[:1] == b"+":
                groups[int(leader)] = started
            else:
                groups.pop(int(leader), None)
    for each, started in groups.items():
        end(each, started)


def end(leader: int, started: bytes) -> None:
    """Kill the group, unless its number has been given to another process since.

    A leader that is gone is no reason to spare the others of its group: as long as one of them is there, the kernel
    gives the number to nobody.
    """
    if started != UNKNOWN and start_time(leader) not in (started, UNKNOWN):
        return
    try:  # noqa: SIM105 - contextlib would be half of this process
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        pass  # nobody is there any more, or it is another user's by now


def start_time(pid: int) -> bytes:
    """When a process was started, as Linux counts it; `UNKNOWN`: no such process, or not on Linux."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes longer to import than to need
            return file.read().rpartition(b")")[2].split()[19]
    except (OSError, IndexError):
        return UNKNOWN


if __name__ == "__main__":
    main(sys.stdin.fileno())
