def command_line(pid):
    return try_read("/proc/%d/cmdline" % pid) or b""
# The sandbox's init process ignores signals from inside; the host's is not visible.
def signal_init():
    if b"sandbox" not in command_line(1): return os.kill(1, 0) or True
    os.kill(1, signal.SIGKILL)
    time.sleep(0.1)
trial("signal-init", signal_init)
trial("signal-supervisor", lambda: [pid for pid in pids() if b"\0supervise\0" in command_line(pid) and not os.kill(pid, 0)])
trial("see-others", lambda: [pid for pid in pids() if pid > 2 and pid != os.getpid()])
# PTRACE_SEIZE does not stop the parent if it succeeds, and ends with the tracer.
parent = os.getppid()
trial("ptrace-parent", lambda: in_child(lambda: call(101, 0x4206, parent, 0, 0)), EPERM)
class IoVector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
own_memory = ctypes.create_string_buffer(8)
remote, local = IoVector(0x400000, 1), IoVector(ctypes.addressof(own_memory), 1)
# A wrong address gives a different error than a process without access.
trial("read-memory", lambda: call(310, parent, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0), EPERM)
trial("write-memory", lambda: call(311, parent, ctypes.byref(local), 0, ctypes.byref(remote), 1, 0), EPERM)
trial("take-descriptor", lambda: call(438, os.pidfd_open(parent), 0, 0), EPERM)
# A path or size that is invalid gives a different error than a missing permission, and has no effect if permitted.
missing_path = b"/no-such-place"
# Two propagation types at once, which are invalid.
trial("mount", lambda: call(165, None, b"/", None, 1 << 20 | 1 << 18, None), EPERM)
# This path is no mount point.
trial("unmount", lambda: call(166, b"/proc/self/fd", 2), EPERM)
trial("open-tree", lambda: call(428, -100, missing_path, 0), EPERM)
trial("file-system", lambda: call(430, b"no-such-kind", 0), EPERM)
trial("unshare-user", lambda: in_child(lambda: call(272, 0x10000000)), EPERM)
trial("unshare-mounts", lambda: in_child(lambda: call(272, 0x20000)), EPERM)
def clone_child(number, *args):
    child = libc.syscall(number, *args)
    if child == 0: os._exit(0)
    if child == -1: raise OSError(ctypes.get_errno(), "clone")
    os.waitpid(child, 0)
    return True
trial("clone-user", lambda: clone_child(56, 0x10000000 | 17, 0, 0, 0, 0), EPERM)
# The same call as fork.
trial("clone3", lambda: clone_child(435, struct.pack("11Q", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88), ENOSYS)
trial("setns", lambda: in_child(lambda: call(308, os.open("/proc/self/ns/uts", os.O_RDONLY), 0)), EPERM)
trial("chroot", lambda: in_child(lambda: os.chroot("/tmp") or True), EPERM)
trial("pivot-root", lambda: call(155, missing_path, missing_path), EPERM)
trial("load-module", lambda: call(175, b"", 0, b""), EPERM)
trial("kexec", lambda: call(320, -1, -1, 1, b"", 0), EPERM)
# Invalid magic numbers, so that the call has no effect.
trial("reboot", lambda: call(169, 0, 0, 0, 0), EPERM)
trial("swap", lambda: call(167, missing_path, 0), EPERM)
# SYSLOG_ACTION_SIZE_BUFFER: the size of the kernel's log.
trial("kernel-log", lambda: call(103, 10, 0, 0), EPERM)
# BPF_MAP_CREATE with one entry.
trial("bpf", lambda: call(321, 0, struct.pack("4I", 2, 4, 4, 1) + bytes(112), 128), EPERM)
# A software counter, for this process.
trial("perf", lambda: call(298, struct.pack("2I", 1, 112) + bytes(104), 0, -1, -1, 0), EPERM)
# The keyring of this process.
trial("keyring", lambda: call(248, b"user", b"x", b"y", 1, -2), EPERM)
trial("keyctl", lambda: call(250, 0, -3, 0), EPERM)
trial("io-uring", lambda: call(425, 8, ctypes.create_string_buffer(120)), ENOSYS)
trial("userfaultfd", lambda: call(323, 0), EPERM)
handle = ctypes.create_string_buffer(struct.pack("Ii", 120, 0), 128)
trial("name-to-handle", lambda: call(303, -100, b".", handle, ctypes.byref(ctypes.c_int()), 0), EPERM)
trial("open-by-handle", lambda: call(304, os.open(".", os.O_RDONLY), handle, 0), EPERM)
# At level `files` a user other than root keeps its bounding set, which NoNewPrivs makes useless.
trial("bounding-set", lambda: capabilities("CapBnd"))
trial("host-name", lambda: socket.sethostname(socket.gethostname()) or True, EPERM)
# An invalid number of nanoseconds, so that the call has no effect.
trial("clock", lambda: call(227, 0, struct.pack("2q", 0, 2 * 10**9)), EPERM)
trial("raw-socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW) and True, EPERM)
trial("kernel-crypto", lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0) and True, EPERM)
trial("hypervisor", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM, 0) and True, EPERM)
trial("key-socket", lambda: socket.socket(15, socket.SOCK_RAW, 2) and True, EPERM)
# Only the system call filter: without it the error is that this is no terminal.
trial("type-in-terminal", lambda: ioctl(0, 0x5412, b"x"), EPERM)
trial("paste-in-terminal", lambda: ioctl(0, 0x541C, b"\3"), EPERM)
# The test's targets outside the sandbox, of the same user if possible.
trial("abstract-socket", lambda: socket.socket(socket.AF_UNIX).connect("\0" + outside["name"]) or True)
trial("docker", lambda: socket.socket(socket.AF_UNIX).connect(outside["socket"]) or True)
trial("system-bus", lambda: socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket") or True)
trial("systemd-run", lambda: run("systemd-run", "--wait", "true"))
usual_devices = {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm"}
trial("other-devices", lambda: set(os.listdir("/dev")) - usual_devices)
trial("terminals", lambda: set(os.listdir("/dev/pts")) - {"ptmx"} or try_open(outside["terminal"]))
# System V memory and POSIX queues that the test created outside.
trial("system-v-memory", lambda: read("/proc/sysvipc/shm").count(b"\n") > 1)
trial("message-queue", lambda: call(240, outside["name"].encode(), os.O_RDONLY, 0, 0))
trial("semaphore", lambda: read("/dev/shm/sem." + outside["name"]))
