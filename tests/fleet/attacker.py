# Tries to access the worker token, other users' jobs, and the server from within a job.
import glob, json, os, urllib.error, urllib.request

targets = json.load(open(os.path.join(os.path.dirname(os.environ["CONFIG_PATH"]), "targets.json")))


def attempt(name, work):
    try:
        found = work()
    except (OSError, urllib.error.URLError) as error:
        found = getattr(error, "code", None) in (200, 201) and error
    print(name, "out" if found else "held", flush=True)


def read(path):
    with open(path, "rb") as file:
        return file.read(64)


def environments():
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if targets["secret"].encode() in file.read():
                    return True
        except OSError:
            pass
    return False


def descriptors(pid):
    directory = "/proc/%d/fd/" % pid
    for number in os.listdir(directory):
        try:
            return os.readlink(directory + number)
        except OSError:
            pass


def call(path, body, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(targets["url"] + path, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request).status < 300


own = os.environ.get("SIMPLETUNER_UPLOAD_TOKEN", "")
other = "/api/workers/job/" + targets["job"]
for number, path in enumerate(targets["files"]):
    attempt("file-%d" % number, lambda: read(path))
for name in ("agent", "server"):
    pid = targets[name]
    attempt(name + "-environment", lambda: read("/proc/%d/environ" % pid))
    attempt(name + "-memory", lambda: read("/proc/%d/mem" % pid))
    attempt(name + "-descriptors", lambda: descriptors(pid))
    attempt(name + "-signal", lambda: os.kill(pid, 0) is None)
# Parent directories of the job's own files exist, but contain nothing else.
attempt("state", lambda: [name for name in os.listdir(targets["state"]) if name not in ("jobs", "users")])
attempt("environments", environments)
attempt("other-status", lambda: call(other + "/status", {"status": "failed", "attempt": 1}, X_Upload_Token=own))
attempt("other-secrets", lambda: call(other + "/secrets?attempt=1", {}, X_Upload_Token=own))
attempt("worker-by-job-token", lambda: call("/api/workers/register", {"protocol": 1}, X_Worker_Token=own))
attempt("users", lambda: call("/api/admin/users", {"name": "eve", "role": "admin", "password": "p" * 16}))
attempt("users-by-job-token", lambda: call("/api/admin/users", {"name": "eve", "role": "admin", "password": "p" * 16}, Authorization="Bearer " + own))
print("tried", flush=True)
