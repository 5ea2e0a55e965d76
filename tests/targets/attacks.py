"""Attempts of a script to get out of its sandbox. Each says by itself, as its result, whether it got what it wanted.

An attempt is the body of `attack(prey)`: what it returns is its loot, what it raises, or None, is its failure. `prey`
has things of this machine that no script may reach. `plain` attempts harm nobody and are also made without a sandbox,
where they must succeed: an attempt that can't succeed proves nothing.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["ATTACKS", "NETWORK_ATTACKS", "Attack", "code_of", "one_by_one"]

PRELUDE = """
import ctypes, errno, fcntl, json, os, resource, signal, socket, stat, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
def syscall(x86, arm, *args):
    number = x86 if X86 else arm
    done = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return done
def read(path):
    with open(path, "rb") as file:
        return file.read(100000).decode("utf-8", "replace")
def attack(prey):
"""
CODA = """
try:
    loot = attack(json.load(sys.stdin))
    told = {"escaped": loot is not None, "loot": str(loot)[:200]}
except BaseException as error:
    told = {"escaped": False, "loot": f"{type(error).__name__}: {error}"[:200]}
print()
print(json.dumps(told))
"""
ONE_BY_ONE = """
import json, subprocess, sys
prey, found = sys.stdin.read(), {{}}
for name, code in json.loads({attacks!r}).items():
    done = subprocess.run([sys.executable, "-c", code], input=prey, capture_output=True, text=True)
    said = done.stdout.splitlines()
    found[name] = json.loads(said[-1]) if said else {{"escaped": False, "loot": f"{{done.returncode}} {{done.stderr}}"}}
print(json.dumps(found))
"""


class Attack(NamedTuple):
    name: str
    body: str
    plain: bool = True  # it is made without a sandbox, too, and succeeds there


def code_of(attack: Attack) -> str:
    return PRELUDE + textwrap.indent(textwrap.dedent(attack.body).strip(), "    ") + CODA


def one_by_one(attacks: Iterable[Attack]) -> str:
    """Each by a process of its own, in one sandbox: starting one may take long. The result: what each says, by name."""
    return ONE_BY_ONE.format(attacks=json.dumps({attack.name: code_of(attack) for attack in attacks}))


ATTACKS = (
    # files
    Attack("read a file of the host", "return read(prey['secret_file'])"),
    Attack("read the users of the host", "return read('/etc/passwd')"),
    Attack("read the passwords of the host", "return read('/etc/shadow')"),
    Attack("list the home of root", "return os.listdir('/root')"),
    Attack("list the folder of the node", "return os.listdir(prey['folder'])"),
    Attack(
        "a symbolic link to a file of the host",
        """
        place = os.environ.get("TMPDIR", "/tmp") + "/link-" + str(os.getpid())
        os.symlink(prey['secret_file'], place)
        try:
            return read(place)
        finally:
            os.unlink(place)
        """,
    ),
    Attack("the root of another process", "return read(f\"/proc/{prey['victim']}/root{prey['secret_file']}\")"),
    Attack("the root of the first process", "return read('/proc/1/root' + prey['secret_file'])", plain=False),
    Attack("the working directory upwards", "return read('/proc/self/cwd/' + '../' * 20 + prey['secret_file'])"),
    Attack("write a file of the host", "open(prey['writable_file'], 'w').write('x'); return 'written'"),
    Attack("change the rights of a file of the host", "os.chmod(prey['writable_file'], 0o666); return 'changed'"),
    Attack("change the times of a file of the host", "os.utime(prey['writable_file']); return 'changed'"),
    Attack("empty a file of the host", "os.truncate(prey['writable_file'], 0); return 'emptied'"),
    Attack("a file beside the programs", "open('/usr/bin/onthedot-attack', 'x'); return 'made'", plain=False),
    Attack("a file in the root", "open('/onthedot-attack', 'x'); return 'made'", plain=False),
    Attack("a file in /dev", "open('/dev/onthedot-attack', 'x'); return 'made'", plain=False),
    Attack(
        "its own code, from within",
        """
        try:
            os.chmod(__file__, 0o600)
        except OSError:
            pass
        os.write(os.open(__file__, os.O_WRONLY | os.O_APPEND), b'#')
        return 'changed'
        """,
    ),
    Attack("its own code, replaced", "os.rename(__file__, __file__ + '2'); return 'moved'"),
    Attack("shared memory of the host", "return read('/dev/shm/' + prey['shared'])"),
    Attack("a device that the host has", "return os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)"),
    Attack(
        "a device of its own making",
        """
        place = os.environ.get("TMPDIR", "/tmp") + "/device-" + str(os.getpid())
        os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 11))
        try:
            return os.open(place, os.O_RDONLY | os.O_NONBLOCK)
        finally:
            os.unlink(place)
        """,
    ),
    Attack("a setting of the kernel", "return os.open('/proc/sys/kernel/hostname', os.O_WRONLY)"),
    Attack("the magic key", "return os.open('/proc/sysrq-trigger', os.O_WRONLY)", plain=False),
    Attack("the devices of the kernel", "return os.listdir('/sys/kernel')"),
    Attack("the cgroups", "return os.listdir('/sys/fs/cgroup')"),
    Attack(
        "a file by its handle",
        """
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
        mount = ctypes.c_int()
        return syscall(303, 264, -100, ctypes.c_char_p(b"/usr"), handle, ctypes.byref(mount), 0)
        """,
    ),
    # processes
    Attack("the environment of the node", "return read(f\"/proc/{prey['node']}/environ\")"),
    Attack(
        "a secret in the environment of any process",
        """
        for pid in filter(str.isdecimal, os.listdir('/proc')):
            try:
                if 'prey-secret' in read(f'/proc/{pid}/environ'):
                    return pid
            except OSError:
                pass
        """,
    ),
    Attack("see the processes of the host", "return read(f\"/proc/{prey['victim']}/cmdline\")"),
    Attack("a signal to another process", "os.kill(prey['victim'], 0); return 'sent'"),
    Attack("a signal to the node", "os.kill(prey['node'], 0); return 'sent'"),
    Attack(
        "a queued signal to another process",
        """
        told = ctypes.create_string_buffer(struct.pack('iii', 0, 0, -1) + bytes(116))
        return syscall(129, 138, prey['victim'], 0, told)
        """,
    ),
    Attack(
        "a signal by a descriptor",
        "return signal.pidfd_send_signal(os.pidfd_open(prey['victim']), 0) or 'sent'",
    ),
    Attack(
        "a signal to a thread of another process",
        "return syscall(234, 131, prey['victim'], prey['victim'], 0) or 'sent'",
    ),
    Attack(
        "a signal by the owner of a pipe",
        """
        told, tell = os.pipe()
        fcntl.fcntl(told, fcntl.F_SETOWN, prey['victim'])
        fcntl.fcntl(told, 10, signal.SIGURG)
        fcntl.fcntl(told, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(tell, b'x')
        return 'sent'
        """,
    ),
    Attack(
        "a signal by the owner of a socket",
        """
        told, tell = socket.socketpair()
        fcntl.ioctl(told, 0x8901, struct.pack("i", prey['victim']))
        return 'sent'
        """,
    ),
    Attack(
        "trace another process",
        """
        done = syscall(101, 117, 16, prey['victim'], 0, 0)
        os.waitpid(prey['victim'], 0x40000000)
        syscall(101, 117, 17, prey['victim'], 0, 0)
        return 'traced'
        """,
    ),
    Attack(
        "trace itself",
        """
        pid = os.fork()
        if not pid:
            os._exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else 9)
        return 'traced' if os.waitpid(pid, 0)[1] == 0 else None
        """,
    ),
    Attack(
        "read the memory of another process",
        """
        maps = read(f"/proc/{prey['victim']}/maps").splitlines()
        start = int(maps[0].split('-')[0], 16)
        buffer = ctypes.create_string_buffer(16)
        local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 16)
        remote = (ctypes.c_size_t * 2)(start, 16)
        return syscall(310, 270, prey['victim'], local, 1, remote, 1, 0)
        """,
    ),
    Attack("a descriptor of another process", "return syscall(438, 438, os.pidfd_open(prey['victim']), 0, 0)"),
    Attack("the limits of another process", "return resource.prlimit(prey['victim'], resource.RLIMIT_NOFILE)"),
    Attack("the priority of another process", "os.setpriority(os.PRIO_PROCESS, prey['victim'], 1); return 'changed'"),
    Attack(
        "an inherited descriptor",
        """
        own = read(__file__)
        for number in range(3, 1024):
            try:
                fcntl.fcntl(number, fcntl.F_GETFD)
            except OSError:
                continue
            try:
                if os.pread(number, 1000, 0).decode('utf-8', 'replace') == own[:1000]:
                    continue  # the script itself, which it may read
            except OSError:
                pass
            return number
        """,
    ),
    Attack("input to a terminal", "fcntl.ioctl(prey.get('terminal', 0), 0x5412, b'x'); return 'typed'", plain=False),
    # namespaces and mounts
    Attack(
        "a mount",
        "return syscall(165, 40, ctypes.c_char_p(b'x'), ctypes.c_char_p(b'/tmp'), ctypes.c_char_p(b'tmpfs'), 0, 0)",
        plain=False,
    ),
    Attack("undo a mount", "return syscall(166, 39, ctypes.c_char_p(b'/proc'), 0)", plain=False),
    Attack("a mount by the new calls", "return syscall(430, 430, ctypes.c_char_p(b'tmpfs'), 0)"),
    Attack("a tree of mounts", "return syscall(428, 428, -100, ctypes.c_char_p(b'/'), 1)"),
    Attack("another root", "os.chroot('/usr'); return 'changed'"),
    Attack("a namespace of users", "return syscall(272, 97, 0x10000000) or 'made'"),
    Attack("a namespace of mounts", "return syscall(272, 97, 0x20000) or 'made'"),
    Attack("a namespace of networks", "return syscall(272, 97, 0x40000000) or 'made'"),
    Attack(
        "a namespace of another process",
        "return syscall(308, 268, os.open(f\"/proc/{prey['victim']}/ns/uts\", os.O_RDONLY), 0) or 'entered'",
    ),
    Attack(
        "a namespace of users by clone",
        """
        pid = syscall(56, 220, 0x10000000 | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return 'made'
        """,
    ),
    Attack(
        "a namespace of users by clone3",
        """
        asked = ctypes.create_string_buffer(struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0))
        pid = syscall(435, 435, asked, 64)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return 'made'
        """,
    ),
    Attack(
        "the name of the host",
        "return os.uname().nodename if os.uname().nodename == prey['host'] and prey['hides_host'] else None",
        plain=False,
    ),
    Attack("another name for the host", "socket.sethostname('attacked'); return 'named'", plain=False),
    # privileges
    Attack(
        "become root",
        "os.setuid(0); return os.geteuid() if open('/proc/self/uid_map').read().split()[1] == '0' else None",
    ),
    Attack(
        "capabilities",
        """
        header = ctypes.create_string_buffer(struct.pack('Ii', 0x20080522, 0))
        sets = ctypes.create_string_buffer(24)
        if syscall(125, 90, header, sets) == 0 and any(struct.unpack('6I', sets.raw)):
            return sets.raw.hex()
        """,
    ),
    Attack("privileges by a program", "return 'possible' if libc.prctl(39, 0, 0, 0, 0) == 0 else None"),
    Attack("raise a limit", "resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)); return 'raised'", plain=False),
    Attack(
        "a key of the kernel",
        """
        user, name = ctypes.c_char_p(b'user'), ctypes.c_char_p(b'onthedot')
        return syscall(248, 217, user, name, name, 1, -2)
        """,
    ),
    Attack("keys of the session", "return syscall(250, 219, 0, -3, 0)"),
    Attack(
        "a program in the kernel",
        "return syscall(321, 280, 0, ctypes.create_string_buffer(struct.pack('IIII', 2, 4, 4, 1) + bytes(112)), 128)",
    ),
    Attack(
        "counters of the kernel",
        """
        asked = struct.pack('IIQ', 1, 128, 0) + bytes(112)
        return syscall(298, 241, ctypes.create_string_buffer(asked), 0, -1, -1, 0)
        """,
        plain=False,
    ),
    Attack("page faults of its own", "return syscall(323, 282, 0)"),
    Attack("the queue of io_uring", "return syscall(425, 425, 4, ctypes.create_string_buffer(120))"),
    Attack("the address space of another persona", "return 'changed' if syscall(135, 92, 0x0040000) >= 0 else None"),
    Attack("the clock", "time.clock_settime(time.CLOCK_REALTIME, time.time()); return 'set'", plain=False),
    Attack("the log of the kernel", "return syscall(103, 116, 10, 0, 0) or 'read'"),
    Attack("old shared memory", "return syscall(29, 194, 0, 4096, 0o1600)"),
    Attack("old queues of messages", "return syscall(68, 186, 0, 0o1600)"),
    Attack("other processors", "os.sched_setaffinity(0, os.sched_getaffinity(0)); return 'changed'"),
    Attack("secret memory", "return syscall(447, 447, 0)", plain=False),
    Attack("a call that is newer than the filter", "return syscall(1000, 1000) if prey else None", plain=False),
    Attack(
        "calls of another architecture",
        """
        if not X86:
            return None
        import mmap
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(bytes.fromhex('b814000000cd80c3'))  # mov eax, getpid; int 0x80; ret
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        return ctypes.CFUNCTYPE(ctypes.c_int)(address)() if prey['other_architecture'] else None
        """,
        plain=False,
    ),
)

NETWORK_ATTACKS = (
    Attack("a connection to this machine", "return socket.create_connection(('127.0.0.1', prey['tcp']), 2).recv(10)"),
    Attack("a connection by IPv6", "return socket.create_connection(('::1', prey['tcp6']), 2).recv(10)"),
    Attack(
        "a connection to another machine", "return socket.create_connection(('203.0.113.7', prey['tcp']), 2).recv(10)"
    ),
    Attack(
        "the metadata of the cloud", "return socket.create_connection(('169.254.169.254', prey['tcp']), 2).recv(10)"
    ),
    Attack(
        "a datagram to this machine",
        """
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
            asks.settimeout(2)
            asks.sendto(b'ask', ('127.0.0.1', prey['udp']))
            return asks.recv(10)
        """,
    ),
    Attack(
        "an abstract socket",
        """
        with socket.socket(socket.AF_UNIX) as asks:
            asks.connect('\\0' + prey['abstract'])
            return asks.recv(10)
        """,
    ),
    Attack(
        "a socket that is a file",
        """
        with socket.socket(socket.AF_UNIX) as asks:
            asks.connect(prey['socket_file'])
            return asks.recv(10)
        """,
    ),
    Attack("raw packets", "return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    Attack("raw internet packets", "return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    Attack("ciphers of the kernel", "return socket.socket(38, socket.SOCK_SEQPACKET)", plain=False),
    Attack("the host of this virtual machine", "return socket.socket(40, socket.SOCK_STREAM)", plain=False),
    Attack(
        "a pair of sockets of another family, whose module is loaded first",
        """
        for family in {*range(2, 46)}:
            libc.socketpair(family, socket.SOCK_STREAM, 0, (ctypes.c_int * 2)())
            if ctypes.get_errno() not in (errno.EAFNOSUPPORT, errno.ENOSYS, errno.EPERM):
                return family
        """,
    ),
    Attack(
        "an address of the host",
        """
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
            server.bind(('203.0.113.7', 0))
            return server.getsockname()
        """,
    ),
)
