if os.environ["SIMPLETUNER_JOB_ID"] == "j_1":
    for path in ["/tmp/mark", "/dev/shm/mark", os.environ["HOME"] + "/mark", "../output/mark", "mark"]:
        with open(path, "w") as file: file.write("BOBS" + "-SECRET")
    os.environ["MARK"] = "BOBS" + "-SECRET"
    subprocess.Popen([sys.executable, "-c", "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0bobs'); s.listen(); time.sleep(1000)"])
    print("ready", flush=True)
    time.sleep(1000)
mark = ("BOBS" + "-SECRET").encode()
def search():
    found = []
    for top in ("/tmp", "/dev/shm", "/proc", "/root", "/home", os.path.dirname(os.environ["HOME"]), os.environ["CONFIG_PATH"].split("/jobs/")[0]):
        for at, dirs, files in os.walk(top):
            dirs[:] = [name for name in dirs if name not in ("task", "net", "sys", "map_files")]
            for name in files:
                path = os.path.join(at, name)
                if "/proc/self" in path or "/proc/thread-self" in path or "/proc/%d/" % os.getpid() in path or "kmsg" in path: continue
                fd = None
                try:
                    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    if mark in os.read(fd, 65536): found.append(path)
                except OSError: pass
                finally:
                    if fd is not None: os.close(fd)
    return found
trial("search", search)
trial("home", lambda: [name for name in os.listdir(os.path.dirname(os.environ["HOME"])) if name != os.path.basename(os.environ["HOME"])])
trial("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0bobs") or True)
trial("processes", lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and mark in (try_read("/proc/%s/environ" % pid) or b"")])
trial("shared-memory", lambda: os.path.exists("/dev/shm/mark"))
