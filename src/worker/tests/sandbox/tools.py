import base64, ctypes, errno, glob, json, os, signal, socket, subprocess, sys, time, urllib.error, urllib.request
libc = ctypes.CDLL(None, use_errno=True)
def trial(name, work):
    try:
        got = work()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return print(name, "held", type(error).__name__, getattr(error, "errno", ""), flush=True)
    print(name, "out" if got else "held", repr(got)[:200], flush=True)
def call(number, *args):
    if libc.syscall(number, *args) == -1:
        raise OSError(ctypes.get_errno(), "syscall")
    return True
def read(path):
    with open(path, "rb") as file: return file.read(4096)
def write(path):
    with open(path, "w") as file: file.write("x")
    return True
def run(*words):
    return subprocess.run(words, capture_output=True, check=True, timeout=20).stdout

def own(path):
    return path.split("/")[2] in (str(os.getpid()), "self")
def try_read(path):
    try: return read(path)
    except OSError: return None
def try_open(path):
    try:
        open(path, "rb").close()
        return True
    except OSError: return False

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
def alive(pid):
    return os.path.exists("/proc/%d/stat" % pid)
def capable():
    lines = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    return any(int(lines[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"))
