def command_line(pid):
    return try_read("/proc/%d/cmdline" % pid) or b""
# The sandbox's own first process ends by nothing that comes from inside; the host's is not there.
def signal_init():
    if b"sandbox" not in command_line(1): return os.kill(1, 0) or True
    os.kill(1, signal.SIGKILL)
    time.sleep(0.1)
trial("signal-init", signal_init)
trial("signal-supervisor", lambda: [pid for pid in pids() if b"\0supervise\0" in command_line(pid) and not os.kill(pid, 0)])
trial("see-others", lambda: [pid for pid in pids() if pid > 2 and pid != os.getpid()])
# PTRACE_SEIZE, which does not stop the parent where it works, and ends with the one who does it.
parent = os.getppid()
trial("ptrace-parent", lambda: apart(lambda: call(101, 0x4206, parent, 0, 0)), EPERM)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
own_memory = ctypes.create_string_buffer(8)
there, here = Piece(0x400000, 1), Piece(ctypes.addressof(own_memory), 1)
# An address that is wrong is another error than a process that is out of reach.
trial("read-memory", lambda: call(310, parent, ctypes.byref(here), 1, ctypes.byref(there), 1, 0), EPERM)
trial("write-memory", lambda: call(311, parent, ctypes.byref(here), 0, ctypes.byref(there), 1, 0), EPERM)
trial("take-descriptor", lambda: call(438, os.pidfd_open(parent), 0, 0), EPERM)
# A path or a size that is not is another error than not to be permitted, and nothing happens where these work.
nowhere = b"/no-such-place"
# Two ways at once to share what is mounted.
trial("mount", lambda: call(165, None, b"/", None, 1 << 20 | 1 << 18, None), EPERM)
# Nothing is mounted there.
trial("unmount", lambda: call(166, b"/proc/self/fd", 2), EPERM)
trial("open-tree", lambda: call(428, -100, nowhere, 0), EPERM)
trial("file-system", lambda: call(430, b"no-such-kind", 0), EPERM)
trial("unshare-user", lambda: apart(lambda: call(272, 0x10000000)), EPERM)
trial("unshare-mounts", lambda: apart(lambda: call(272, 0x20000)), EPERM)
def cloned(number, *args):
    child = libc.syscall(number, *args)
    if child == 0: os._exit(0)
    if child == -1: raise OSError(ctypes.get_errno(), "clone")
    os.waitpid(child, 0)
    return True
trial("clone-user", lambda: cloned(56, 0x10000000 | 17, 0, 0, 0, 0), EPERM)
# As fork does it.
trial("clone3", lambda: cloned(435, struct.pack("11Q", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88), ENOSYS)
trial("setns", lambda: apart(lambda: call(308, os.open("/proc/self/ns/uts", os.O_RDONLY), 0)), EPERM)
trial("chroot", lambda: apart(lambda: os.chroot("/tmp") or True), EPERM)
trial("pivot-root", lambda: call(155, nowhere, nowhere), EPERM)
trial("load-module", lambda: call(175, b"", 0, b""), EPERM)
trial("kexec", lambda: call(320, -1, -1, 1, b"", 0), EPERM)
# With magic numbers that are none.
trial("reboot", lambda: call(169, 0, 0, 0, 0), EPERM)
trial("swap", lambda: call(167, nowhere, 0), EPERM)
# The size of the kernel's messages.
trial("kernel-log", lambda: call(103, 10, 0, 0), EPERM)
# A table of one number.
trial("bpf", lambda: call(321, 0, struct.pack("4I", 2, 4, 4, 1) + bytes(112), 128), EPERM)
# The processor's time of this process, as software counts it.
trial("perf", lambda: call(298, struct.pack("2I", 1, 112) + bytes(104), 0, -1, -1, 0), EPERM)
# In the keyring of this process.
trial("keyring", lambda: call(248, b"user", b"x", b"y", 1, -2), EPERM)
trial("keyctl", lambda: call(250, 0, -3, 0), EPERM)
trial("io-uring", lambda: call(425, 8, ctypes.create_string_buffer(120)), ENOSYS)
trial("userfaultfd", lambda: call(323, 0), EPERM)
handle = ctypes.create_string_buffer(struct.pack("Ii", 120, 0), 128)
trial("name-to-handle", lambda: call(303, -100, b".", handle, ctypes.byref(ctypes.c_int()), 0), EPERM)
trial("open-by-handle", lambda: call(304, os.open(".", os.O_RDONLY), handle, 0), EPERM)
# At `files`, who is not root keeps what no program can give it any more.
trial("bounding-set", lambda: capabilities("CapBnd"))
trial("host-name", lambda: socket.sethostname(socket.gethostname()) or True, EPERM)
# No time has so many nanoseconds.
trial("clock", lambda: call(227, 0, struct.pack("2q", 0, 2 * 10**9)), EPERM)
trial("raw-socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW) and True, EPERM)
trial("kernel-crypto", lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0) and True, EPERM)
trial("hypervisor", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM, 0) and True, EPERM)
trial("key-socket", lambda: socket.socket(15, socket.SOCK_RAW, 2) and True, EPERM)
# The second lock alone: without it, what is no terminal says so.
trial("type-in-terminal", lambda: ioctl(0, 0x5412, b"x"), EPERM)
trial("paste-in-terminal", lambda: ioctl(0, 0x541C, b"\3"), EPERM)
# What the test has outside of the sandbox, as the same user where that can be.
trial("abstract-socket", lambda: socket.socket(socket.AF_UNIX).connect("\0" + outside["name"]) or True)
trial("docker", lambda: socket.socket(socket.AF_UNIX).connect(outside["socket"]) or True)
trial("system-bus", lambda: socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket") or True)
trial("systemd-run", lambda: run("systemd-run", "--wait", "true"))
usual = {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm"}
trial("other-devices", lambda: set(os.listdir("/dev")) - usual)
trial("terminals", lambda: set(os.listdir("/dev/pts")) - {"ptmx"} or try_open(outside["terminal"]))
# System V memory and POSIX queues that the test has made outside.
trial("system-v-memory", lambda: read("/proc/sysvipc/shm").count(b"\n") > 1)
trial("message-queue", lambda: call(240, outside["name"].encode(), os.O_RDONLY, 0, 0))
trial("semaphore", lambda: read("/dev/shm/sem." + outside["name"]))
