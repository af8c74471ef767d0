import base64, ctypes, errno, glob, json, os, resource, signal, socket, struct, subprocess, sys, time, urllib.error, urllib.request
from errno import EPERM, ENOSYS
libc = ctypes.CDLL(None, use_errno=True)
# The sandbox held if `work` fails with one of `rejections` (with any error if there are none), or returns a false value.
def trial(name, work, *rejections):
    try:
        result = work()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        result = error
        if not rejections or getattr(error, "errno", None) in rejections:
            return print(name, "held", type(error).__name__, getattr(error, "errno", ""), flush=True)
    print(name, "out" if result else "held", repr(result)[:200], flush=True)
def call(number, *args):
    if libc.syscall(number, *args) == -1:
        raise OSError(ctypes.get_errno(), "syscall")
    return True
def ioctl(fd, request, argument):
    if libc.ioctl(fd, request, argument) == -1:
        raise OSError(ctypes.get_errno(), "ioctl")
    return True
# Runs `work` in a child, because it would change this process permanently.
def in_child(work):
    child = os.fork()
    if child == 0:
        code = 255
        try: code = 0 if work() else 254
        except OSError as error: code = error.errno
        finally: os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code: raise OSError(code, "in a child")
    return True
def read(path):
    with open(path, "rb") as file: return file.read(4096)
def write(path):
    with open(path, "w") as file: file.write("x")
    return True
def run(*words):
    return subprocess.run(words, capture_output=True, check=True, timeout=20).stdout

# Changes no existing file, and leaves no new one.
def may_write(path):
    was_there = os.path.lexists(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY, 0o600))
    if not was_there: os.unlink(path)
    return True
# Whether a file can be added to the directory, or to its nearest existing parent.
def may_add(path):
    while not os.path.isdir(path): path = os.path.dirname(path)
    return may_write("%s/simpletuner-trial-%d" % (path, os.getpid()))
def write_back(path):
    value = read(path)
    fd = os.open(path, os.O_WRONLY)
    try: return os.write(fd, value)
    finally: os.close(fd)
def is_own_process(path):
    return path.split("/")[2] in (str(os.getpid()), "self")
def try_read(path):
    try: return read(path)
    except OSError: return None
def try_open(path):
    try: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError: return False
    return True

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
def capabilities(*names):
    lines = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    return any(int(lines[name], 16) for name in names)
def has_capabilities():
    return capabilities("CapEff", "CapPrm", "CapInh", "CapAmb")
