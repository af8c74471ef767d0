state = os.environ["CONFIG_PATH"].split("/jobs/")[0]
attempt = os.path.dirname(os.path.dirname(os.environ["CONFIG_PATH"]))
trial("install-id", lambda: read(state + "/install-id"))
# Directories that lead to what was given are there, and empty but for that.
trial("list-state", lambda: [name for name in os.listdir(state) if name not in ("jobs", "people")])
trial("list-jobs", lambda: [name for name in os.listdir(state + "/jobs") if name != os.environ["SIMPLETUNER_JOB_ID"]])
trial("secrets", lambda: read(attempt + "/secrets.json"))
trial("spec", lambda: read(attempt + "/spec.json"))
trial("sandbox-plan", lambda: write(attempt + "/sandbox.json"))
trial("exit-file", lambda: write(attempt + "/exit.json"))
trial("stop-file", lambda: write(attempt + "/control/stop"))
trial("shadow", lambda: read("/etc/shadow"))
trial("root-home", lambda: [name for name in os.listdir("/root") if not sys.prefix.startswith("/root/" + name)])
trial("ssh-keys", lambda: read("/root/.ssh/authorized_keys"))
trial("worker-env", lambda: os.listdir("/etc/simpletuner"))
trial("write-etc", lambda: write("/etc/cron.d/x"))
trial("write-usr", lambda: write("/usr/local/bin/x"))
trial("write-root", lambda: write("/x"))
trial("crontab", lambda: write("/var/spool/cron/crontabs/root"))
trial("at", lambda: write("/var/spool/at/x"))
devices = ["vda", "sda", "nvme0n1", "mem", "port", "kmsg", "fuse", "kvm", "net/tun", "loop0", "vsock", "console"]
trial("devices", lambda: [name for name in devices if try_open("/dev/" + name)])
trial("make-device", lambda: os.mknod("/tmp/null", 0o20666, os.makedev(1, 1)) or read("/tmp/null"))
trial("sysctl", lambda: write("/proc/sys/kernel/core_pattern"))
trial("sysrq", lambda: write("/proc/sysrq-trigger"))
trial("link-out", lambda: os.symlink("/etc/shadow", attempt + "/output/link") or read(attempt + "/output/link"))
trial("hard-link", lambda: os.link("/etc/passwd", attempt + "/output/hard") or False)
# What comes inside an event is written by the supervisor, which may write anywhere.
def image_through_link():
    os.symlink(attempt + "/control", attempt + "/output/validation_images")
    hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
    headers = {"X-API-Key": hook["auth_token"], "Content-Type": "application/json"}
    event = {"type": "notification", "images": [base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 10).decode()]}
    refused = None
    try: urllib.request.urlopen(urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), headers), timeout=5)
    except urllib.error.HTTPError as error: refused = error.code
    return os.listdir(attempt + "/control") or refused != 400
trial("event-link", image_through_link)
trial("docker", lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock") or True)
trial("agents-environment", lambda: [path for path in glob.glob("/proc/[0-9]*/environ") if b"wt_test" in (try_read(path) or b"")])
trial("agents-memory", lambda: [path for path in glob.glob("/proc/[0-9]*/mem") if not own(path) and try_open(path)])
trial("agents-descriptors", lambda: [path for path in glob.glob("/proc/[0-9]*/fd/*") if not own(path) and try_read(path)])
trial("open-descriptors", lambda: [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3])
