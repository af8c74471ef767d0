state = os.environ["CONFIG_PATH"].split("/jobs/")[0]
attempt = os.path.dirname(os.path.dirname(os.environ["CONFIG_PATH"]))
trial("install-id", lambda: read(state + "/install-id"))
# Directories that lead to what was given are there, and empty but for that.
trial("list-state", lambda: [name for name in os.listdir(state) if name not in ("jobs", "users")])
trial("list-jobs", lambda: [name for name in os.listdir(state + "/jobs") if name != os.environ["SIMPLETUNER_JOB_ID"]])
trial("secrets", lambda: read(attempt + "/secrets.json"))
trial("spec", lambda: read(attempt + "/spec.json"))
trial("sandbox-plan", lambda: may_write(attempt + "/sandbox.json"))
# Beside its end, `exit.json`, which the agent looks for.
trial("exit-file", lambda: may_add(attempt))
trial("stop-file", lambda: may_write(attempt + "/control/other"))
trial("shadow", lambda: read("/etc/shadow"))
trial("root-home", lambda: [name for name in os.listdir("/root") if not sys.prefix.startswith("/root/" + name)])
# Of whoever the agent is, as the test has put them there.
trial("ssh-keys", lambda: read(state + "/../.ssh/id_ed25519"))
trial("worker-env", lambda: read(state + "/../worker.env"))
trial("another-home", lambda: os.listdir(outside["home"]))
trial("write-etc", lambda: may_add("/etc/cron.d"))
trial("write-usr", lambda: may_add("/usr/local/bin"))
trial("write-root", lambda: may_add("/"))
trial("crontab", lambda: may_add("/var/spool/cron/crontabs"))
trial("at", lambda: may_add("/var/spool/at"))
trial("write-own-program", lambda: may_write(os.path.abspath(__file__)))
devices = ["vda", "sda", "nvme0n1", "mem", "port", "kmsg", "fuse", "kvm", "net/tun", "loop0", "vsock", "console"]
trial("devices", lambda: [name for name in devices if try_open("/dev/" + name)])
def make_device():
    # Some systems let no device file in /tmp work.
    path = "%s/output/device-%d" % (attempt, os.getpid())
    os.mknod(path, 0o20666, os.makedev(1, 5))
    try: return read(path)
    finally: os.unlink(path)
trial("make-device", make_device)
trial("sysctl", lambda: write_back("/proc/sys/kernel/core_pattern"))
# Opened only: what is written there is done.
trial("sysrq", lambda: try_open("/proc/sysrq-trigger") or os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)) or True)
# Whatever of the kernel root could change without a capability; opened only. The first two and the next process ID take one, or
# change nothing.
def kernel_files():
    tops = [name for name in os.listdir("/proc") if not name.isdigit() and name not in ("mtrr", "pressure", "self", "thread-self", "net", "mounts")]
    files = [at + "/" + name for top in tops for at, _, names in os.walk("/proc/" + top) for name in names] + ["/proc/" + top for top in tops]
    return [path for path in files if os.path.isfile(path) and not path.endswith("/ns_last_pid") and may_open_to_write(path)]
def may_open_to_write(path):
    try: return os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)) or True
    except OSError: return False
trial("kernel-files", kernel_files)
# At `files`, other processes of the same user are not kept apart, and supervisors are such.
def is_agents(path):
    command = try_read(os.path.dirname(path) + "/cmdline") or b""
    return b"simpletuner-worker" in command and b"\0supervise\0" not in command and b"\0sandbox\0" not in command
trial("agents-oom-score", lambda: [path for path in glob.glob("/proc/[0-9]*/oom_score_adj") if not own(path) and is_agents(path) and may_open_to_write(path)])
trial("link-out", lambda: os.symlink("/etc/shadow", attempt + "/output/link") or read(attempt + "/output/link"))
# What it may only read, on the same disk, would be its own to change.
trial("hard-link", lambda: os.link(os.path.abspath(__file__), attempt + "/output/hard") or os.unlink(attempt + "/output/hard") or True)
# What comes inside an event is written by the supervisor, which may write anywhere.
def image_through_link():
    os.symlink(attempt + "/control", attempt + "/output/validation_images")
    hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
    headers = {"X-API-Key": hook["auth_token"], "Content-Type": "application/json"}
    event = {"type": "notification", "images": [base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 10).decode()]}
    rejected = None
    try: urllib.request.urlopen(urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), headers), timeout=5)
    except urllib.error.HTTPError as error: rejected = error.code
    return os.listdir(attempt + "/control") or rejected != 400
trial("event-link", image_through_link)
trial("agents-environment", lambda: [path for path in glob.glob("/proc/[0-9]*/environ") if b"wt_test" in (try_read(path) or b"")])
trial("agents-memory", lambda: [path for path in glob.glob("/proc/[0-9]*/mem") if not own(path) and try_open(path)])
# Opened only: reading would take bytes from another user's pipe.
trial("agents-descriptors", lambda: [path for path in glob.glob("/proc/[0-9]*/fd/*") if not own(path) and try_open(path)])
trial("open-descriptors", lambda: [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3])
# What leads to the files and the environment of any other process, the first one of all among them.
def others(name):
    return [pid for pid in pids() if pid != os.getpid() and try_open("/proc/%d/%s" % (pid, name))]
trial("roots", lambda: others("root/"))
trial("directories", lambda: others("cwd/"))
trial("environments", lambda: others("environ"))
trial("new-privileges", lambda: b"NoNewPrivs:\t1" not in read("/proc/self/status"))
trial("set-uid", lambda: run(outside["shared"] + "/id", "-u") == b"0\n" and os.getuid() != 0 or capable())
trial("capabilities", capable)
trial("become-root", lambda: apart(lambda: os.setuid(0) or capable()))
# Of processes; where nothing confines, most have no limit or a higher one.
trial("raise-limit", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (30000, 30000)) or True)
trial("core-dump", lambda: resource.setrlimit(resource.RLIMIT_CORE, (1, 1)) or True)
