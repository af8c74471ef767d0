state = os.environ["CONFIG_PATH"].split("/jobs/")[0]
attempt = os.path.dirname(os.path.dirname(os.environ["CONFIG_PATH"]))
trial("install-id", lambda: read(state + "/install-id"))
# Parents of the job's directories are visible, but have no other content.
trial("list-state", lambda: [name for name in os.listdir(state) if name not in ("jobs", "users")])
trial("list-jobs", lambda: [name for name in os.listdir(state + "/jobs") if name != os.environ["SIMPLETUNER_JOB_ID"]])
trial("secrets", lambda: read(attempt + "/secrets.json"))
trial("spec", lambda: read(attempt + "/spec.json"))
trial("sandbox-plan", lambda: may_write(attempt + "/sandbox.json"))
# The directory of `exit.json`, which the agent reads.
trial("exit-file", lambda: may_add(attempt))
trial("stop-file", lambda: may_write(attempt + "/control/other"))
trial("shadow", lambda: read("/etc/shadow"))
trial("root-home", lambda: [name for name in os.listdir("/root") if not sys.prefix.startswith("/root/" + name)])
# Files of the agent's user, created by the test.
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
    # On some systems device files in /tmp do not work.
    path = "%s/output/device-%d" % (attempt, os.getpid())
    os.mknod(path, 0o20666, os.makedev(1, 5))
    try: return read(path)
    finally: os.unlink(path)
trial("make-device", make_device)
trial("sysctl", lambda: write_back("/proc/sys/kernel/core_pattern"))
# Only opened, because the kernel would execute what is written.
trial("sysrq", lambda: try_open("/proc/sysrq-trigger") or os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)) or True)
# All kernel files that root could change without a capability; only opened. The excluded ones need a capability, or
# change nothing.
def kernel_files():
    tops = [name for name in os.listdir("/proc") if not name.isdigit() and name not in ("mtrr", "pressure", "self", "thread-self", "net", "mounts")]
    files = [dir + "/" + name for top in tops for dir, _, names in os.walk("/proc/" + top) for name in names] + ["/proc/" + top for top in tops]
    return [path for path in files if os.path.isfile(path) and not path.endswith("/ns_last_pid") and may_open_to_write(path)]
def may_open_to_write(path):
    try: return os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)) or True
    except OSError: return False
trial("kernel-files", kernel_files)
# Level `files` does not separate processes of one user: it does not protect supervisors, nor an agent of another test
# that is just starting.
agent = "/proc/" + (try_read(os.path.dirname(os.path.abspath(__file__)) + "/agent-pid") or b"none").decode()
def is_agent_visible():
    return b"simpletuner-worker" in (try_read(agent + "/cmdline") or b"")
trial("agents-oom-score", lambda: is_agent_visible() and may_open_to_write(agent + "/oom_score_adj"))
trial("link-out", lambda: os.symlink("/etc/shadow", attempt + "/output/link") or read(attempt + "/output/link"))
# A hard link in its output directory would make a read-only file on the same disk writable.
trial("hard-link", lambda: os.link(os.path.abspath(__file__), attempt + "/output/hard") or os.unlink(attempt + "/output/hard") or True)
# The supervisor, which may write anywhere, writes files that are inside events.
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
trial("agents-memory", lambda: [path for path in glob.glob("/proc/[0-9]*/mem") if not is_own_process(path) and try_open(path)])
# Only opened, because reading would take bytes from another user's pipe.
trial("agents-descriptors", lambda: [path for path in glob.glob("/proc/[0-9]*/fd/*") if not is_own_process(path) and try_open(path)])
trial("open-descriptors", lambda: [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3])
# Links to the files, and the environment, of any other process, including process 1.
def others(name):
    return [pid for pid in pids() if pid != os.getpid() and try_open("/proc/%d/%s" % (pid, name))]
trial("roots", lambda: others("root/"))
trial("directories", lambda: others("cwd/"))
trial("environments", lambda: others("environ"))
trial("new-privileges", lambda: b"NoNewPrivs:\t1" not in read("/proc/self/status"))
trial("set-uid", lambda: run(outside["shared"] + "/id", "-u") == b"0\n" and os.getuid() != 0 or has_capabilities())
trial("capabilities", has_capabilities)
trial("become-root", lambda: in_child(lambda: os.setuid(0) or has_capabilities()))
# The limit of processes. Without a sandbox it is usually higher, or there is none.
trial("raise-limit", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (30000, 30000)) or True)
trial("core-dump", lambda: resource.setrlimit(resource.RLIMIT_CORE, (1, 1)) or True)
