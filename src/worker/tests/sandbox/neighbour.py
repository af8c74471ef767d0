mark = ("BOBS" + "-SECRET").encode()
state = os.environ["CONFIG_PATH"].split("/jobs/")[0]
name = "simpletuner" + state.split("/")[-2].replace(".", "")
hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
if os.environ["SIMPLETUNER_JOB_ID"] == "j_1":
    for path in ["/tmp/" + name, "/dev/shm/" + name, os.environ["HOME"] + "/mark", "../output/mark", "mark"]:
        with open(path, "wb") as file: file.write(mark)
    os.environ["MARK"] = mark.decode()
    subprocess.Popen([sys.executable, "-c", "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0' + sys.argv[1]); s.listen(); time.sleep(1000)", name])
    # Shared memory that is removed with its last process, and a queue.
    memory = libc.shmget(0, 4096, 0o1666)
    libc.shmat(memory, None, 0)
    libc.shmctl(memory, 0, None)
    # Fails with Landlock.
    libc.syscall(240, name.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    os.set_inheritable(os.open("mark", os.O_RDONLY), True)
    print("port", hook["callback_url"].split(":")[2].split("/")[0], flush=True)
    print("ready", flush=True)
    time.sleep(1000)
def search():
    found = []
    for top in outside["more"].get("tops") or ("/tmp", "/dev/shm", "/proc", "/root", "/home", os.path.dirname(os.environ["HOME"]), state):
        for dir, dirs, files in os.walk(top):
            dirs[:] = [name for name in dirs if name not in ("task", "net", "sys", "map_files")]
            for name in files:
                path = os.path.join(dir, name)
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
trial("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0" + name) or True)
trial("processes", lambda: [pid for pid in pids() if mark in (try_read("/proc/%d/environ" % pid) or b"")])
trial("memory", lambda: [pid for pid in pids() if pid != os.getpid() and try_open("/proc/%d/mem" % pid)])
trial("descriptors", lambda: [path for path in glob.glob("/proc/[0-9]*/fd/*") if not is_own_process(path) and try_open(path)])
trial("shared-memory", lambda: os.path.exists("/dev/shm/" + name))
trial("temporary", lambda: os.path.exists("/tmp/" + name))
trial("system-v-memory", lambda: read("/proc/sysvipc/shm").count(b"\n") > 1)
trial("message-queue", lambda: call(240, name.encode(), os.O_RDONLY, 0, 0))
# A process that has the port of another job's webhook would get its events.
def listen(address):
    with socket.socket() as server:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): server.setsockopt(socket.SOL_SOCKET, option, 1)
        server.bind((address, outside["more"]["port"]))
        server.listen()
    return True
trial("webhook-port", lambda: listen("127.0.0.1"))
trial("webhook-port-of-all", lambda: listen("0.0.0.0"))
def send_to_webhook():
    url = hook["callback_url"].replace(hook["callback_url"].split(":")[2].split("/")[0], str(outside["more"]["port"]))
    headers = {"X-API-Key": hook["auth_token"]}
    return urllib.request.urlopen(urllib.request.Request(url, b"{}", headers), timeout=5).status
trial("webhook", send_to_webhook)
for path in ("/tmp/" + name, "/dev/shm/" + name):
    if os.path.exists(path): os.unlink(path)
libc.syscall(241, name.encode())
