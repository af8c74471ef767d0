state = os.environ["CONFIG_PATH"].split("/jobs/")[0]
attempt = os.path.dirname(os.path.dirname(os.environ["CONFIG_PATH"]))
# A file with the setuid bit lets any user of the host run it as the trainer's user. Each system call that sets the bit must fail.
def with_mode(name, change):
    path = "%s/output/%s-%d" % (attempt, name, os.getpid())
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755))
    try: return change(path) or os.stat(path).st_mode & 0o4000
    finally: os.unlink(path)
def by_descriptor(path):
    fd = os.open(path, os.O_RDONLY)
    try: os.fchmod(fd, 0o4755)
    finally: os.close(fd)
trial("set-uid-file", lambda: with_mode("u", lambda path: os.chmod(path, 0o4755)), EPERM)
trial("set-uid-descriptor", lambda: with_mode("f", by_descriptor), EPERM)
trial("set-uid-at", lambda: with_mode("a", lambda path: call(268, -100, path.encode(), 0o4755) and None), EPERM)
trial("set-uid-at-2", lambda: with_mode("b", lambda path: call(452, -100, path.encode(), 0o4755, 0) and None), EPERM, ENOSYS)
def setuid_at_creation(call, *args):
    path = "%s/output/born-%d" % (attempt, os.getpid())
    call(path, *args)
    try: return os.stat(path).st_mode & 0o4000
    finally: os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
trial("set-uid-born", lambda: setuid_at_creation(lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o4755))), EPERM)
trial("set-uid-node", lambda: setuid_at_creation(lambda path: os.mknod(path, 0o104755)), EPERM)
# The test's terminal outside the sandbox.
trial("terminal", lambda: try_open(outside["terminal"]))
# The host's own device.
if outside["more"].get("null"):
    trial("mode-of-null", lambda: os.chmod("/dev/null", os.stat("/dev/null").st_mode & 0o7777) or True, errno.EROFS)
