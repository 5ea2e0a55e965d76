"""System calls that every program may make. For filters that name what is allowed, such as those of container engines:
numbers can't be compared there, so that what is newer than our list could not be refused in any other way."""

from __future__ import annotations

__all__ = ["ORDINARY"]

ORDINARY = (
    *("accept", "accept4", "access", "alarm", "arch_prctl", "bind", "brk", "cachestat", "capget", "capset", "chdir"),
    *("chmod", "chown", "clock_getres", "clock_gettime", "clock_nanosleep", "close", "close_range", "connect"),
    *("copy_file_range", "creat", "dup", "dup2", "dup3", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait"),
    *("epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "execve", "execveat", "exit", "exit_group", "faccessat"),
    *("faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat"),
    *("fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fork", "fremovexattr", "fsetxattr", "fstat"),
    *("fstatat", "fstatfs", "fsync", "ftruncate", "futex", "futex_requeue", "futex_wait", "futex_waitv"),
    *("futex_wake", "futimesat", "get_robust_list", "get_thread_area", "getcpu", "getcwd", "getdents", "getdents64"),
    *("getegid", "geteuid", "getgid", "getgroups", "getitimer", "getpeername", "getpgid", "getpgrp", "getpid"),
    *("getppid", "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid"),
    *("getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "getxattr", "getxattrat", "inotify_add_watch"),
    *("inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy", "io_getevents"),
    *("io_pgetevents", "io_setup", "io_submit", "ioctl", "ioprio_get", "ioprio_set", "kill", "landlock_add_rule"),
    *("landlock_create_ruleset", "landlock_restrict_self", "lchown", "lgetxattr", "link", "linkat", "listen"),
    *("listxattr", "listxattrat", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lsm_get_self_attr"),
    *("lsm_list_modules", "lstat", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "mincore", "mkdir"),
    *("mkdirat", "mknod", "mknodat", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync"),
    *("munlock", "munlockall", "munmap", "nanosleep", "newfstatat", "open", "openat", "openat2", "pause"),
    *("pidfd_open", "pidfd_send_signal", "pipe", "pipe2", "pkey_alloc", "pkey_free", "pkey_mprotect", "poll"),
    *("ppoll", "prctl", "pread64", "preadv", "preadv2", "prlimit64", "pselect6", "pwrite64", "pwritev", "pwritev2"),
    *("read", "readahead", "readlink", "readlinkat", "readv", "recvfrom", "recvmmsg", "recvmsg", "removexattr"),
    *("removexattrat", "rename", "renameat", "renameat2", "restart_syscall", "rmdir", "rseq", "rt_sigaction"),
    *("rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait"),
    *("rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr"),
    *("sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_yield", "seccomp", "select"),
    *("sendfile", "sendmmsg", "sendmsg", "sendto", "set_robust_list", "set_thread_area", "set_tid_address"),
    *("setfsgid", "setfsuid", "setgid", "setgroups", "setitimer", "setpgid", "setpriority", "setregid", "setresgid"),
    *("setresuid", "setreuid", "setrlimit", "setsid", "setsockopt", "setuid", "setxattr", "setxattrat", "shutdown"),
    *("sigaltstack", "signalfd", "signalfd4", "splice", "stat", "statfs", "statx", "symlink"),
    *("symlinkat", "sync", "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time", "timer_create"),
    *("timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime"),
    *("timerfd_settime", "times", "tkill", "truncate", "umask", "uname", "unlink", "unlinkat", "utime", "utimensat"),
    *("utimes", "vfork", "vmsplice", "wait4", "waitid", "write", "writev"),
)
