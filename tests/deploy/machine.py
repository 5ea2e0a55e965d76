"""A machine that systemd runs: this one's files under an overlay that is thrown away, in namespaces of its own, with
systemd as its first process. It has a loopback with PostgreSQL on 5432, and nothing of this machine is changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.manual.reader import FORWARD
from tests.services.orphan_reaper import orphan_reaper
from tests.services.postgres import PostgresServer
from tests.services.waiting import until_blocking

__all__ = ["SystemdMachine", "can_boot", "systemd_machine"]

SHARED = Path("/srv")
SYSTEMD = "/lib/systemd/systemd"
HIERARCHY = Path("/sys/fs/cgroup/systemd")
SPACES = "--mount --pid --net --ipc --uts --cgroup --fork --kill-child"
BEGIN = f"""
mkdir "$3"
echo $$ > "$3/cgroup.procs"
exec unshare {SPACES} sh -euc "$4" sh "$1" "$2" "$5"
"""
"""Its groups of processes are below a group of their own, which becomes the root inside."""
BOOT = r"""
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys && mount -o remount,ro,bind proc/sys
mount -t sysfs -o ro sys sys
printf '#subsys_name\thierarchy\tnum_cgroups\tenabled\n' > "$1/controllers"
mount --bind "$1/controllers" proc/cgroups  # it takes none of this machine's
for each in run tmp; do mount -t tmpfs tmpfs "$each"; done
mount -t tmpfs -o mode=755 tmpfs dev
for each in null zero full random urandom tty; do touch "dev/$each"; mount --bind "/dev/$each" "dev/$each"; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs tmpfs sys/fs/cgroup
mkdir sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
ip link set lo up
# Of what a machine does when it starts, only the journal: its kernel is not ours.
for each in etc/systemd/system/*.wants lib/systemd/system/*.wants; do
    find "$each" -mindepth 1 ! -name 'systemd-journald*' -delete
done
printf '127.0.0.1 localhost db\n' > etc/hosts
printf '#!/bin/sh\nexec "$@"\n' > usr/local/bin/sudo
chmod 755 usr/local/bin/sudo
mount --bind "$2" srv
exec env -i container=onthedot-test SYSTEMD_PROC_CMDLINE=systemd.legacy_systemd_cgroup_controller=1 \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . \
    "$3" --system --unit=basic.target --log-target=console --show-status=0
"""


class SystemdMachine:
    def __init__(self, pid: int) -> None:
        self._pid = pid

    def enter(self, directory: Path = SHARED) -> list[str]:
        """`directory` is /srv here, whatever it is outside."""
        namespaces = ["-n", "-m", "-p", "-i", "-u", f"--root=/proc/{self._pid}/root"]
        return ["nsenter", "-t", str(self._pid), *namespaces, "env", "-C", str(SHARED)]


@contextmanager
def systemd_machine(folder: Path, directory: Path, server: PostgresServer) -> Iterator[SystemdMachine]:
    """`directory` is /srv inside."""
    (folder / "disk").mkdir()
    log = folder / "systemd.log"
    group = HIERARCHY / f"onthedot-test-{os.getpid()}"
    holder = _popen(["sh", "-euc", BEGIN, "sh", str(folder / "disk"), str(directory), str(group), BOOT, SYSTEMD], log)
    forwarder = None
    try:

        def first() -> int:
            """Its first process, once that is systemd."""
            assert holder.poll() is None, log.read_text()
            children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
            with suppress(FileNotFoundError):
                return next((int(each) for each in children if _name(each) == "systemd"), 0)
            return 0

        pid = until_blocking(first, "systemd is there", 20)
        machine = SystemdMachine(pid)

        def booted() -> bool:
            assert holder.poll() is None, log.read_text()
            asked = [*machine.enter(), "systemctl", "is-active", "basic.target"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            return done.stdout.strip() == "active"

        until_blocking(booted, "systemd has started", 30)
        at = f"{server.data.parent}/.s.PGSQL.{server.port}"
        forward = ["nsenter", "-t", str(pid), "-n", sys.executable, "-u", "-c", FORWARD, at, "5432"]
        forwarder = _popen(forward, folder / "forward.log")
        until_blocking(lambda: "there" in (folder / "forward.log").read_text(), "the database is there", 20)
        yield machine
    finally:
        for process in filter(None, (forwarder, holder)):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            orphan_reaper.ended(-process.pid)
        for made in sorted(group.glob("**/"), reverse=True):
            until_blocking(partial(_removed, made), "its groups of processes are empty", 10)


def _removed(group: Path) -> bool:
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


def _name(pid: str) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def can_boot() -> bool:
    programs = ("unshare", "nsenter", "ip", "systemctl")
    return (
        os.geteuid() == 0
        and HIERARCHY.exists()
        and Path(SYSTEMD).exists()
        and all(shutil.which(name) for name in programs)
    )


def _popen(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    orphan_reaper.runs(-process.pid, signal.SIGKILL)
    return process
