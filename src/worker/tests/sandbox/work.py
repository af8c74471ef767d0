import json, multiprocessing, multiprocessing.shared_memory, tempfile, threading
config = json.load(open(os.environ["CONFIG_PATH"]))
def works(name, work):
    try: print(name, "works" if work() else "fails", flush=True)
    except Exception as error: print(name, "fails", repr(error), flush=True)
def pool():
    with multiprocessing.get_context("spawn").Pool(2) as workers: return workers.map(abs, [-1, -2]) == [1, 2]
def shared():
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=1 << 20)
    memory.buf[0] = 7
    reopened = multiprocessing.shared_memory.SharedMemory(memory.name)
    same = reopened.buf[0] == 7
    reopened.close(), memory.close(), memory.unlink()
    return same
def threads():
    numbers = []
    workers = [threading.Thread(target=numbers.append, args=(n,)) for n in range(64)]
    [thread.start() for thread in workers], [thread.join() for thread in workers]
    return len(numbers) == 64
# CUDA also sets the name of a thread other than the writing one.
def name_thread():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    path = "/proc/self/task/%d/comm" % thread.native_id
    try:
        with open(path, "w") as file: file.write("cuda-like")
        with open(path) as file: return file.read() == "cuda-like\n"
    finally: done.set(), thread.join()
def run_script():
    with tempfile.TemporaryDirectory() as dir:
        with open(dir + "/run", "w") as file: file.write("#!/bin/sh\necho compiled\n")
        os.chmod(dir + "/run", 0o755)
        return run(dir + "/run") == b"compiled\n"
def connect_locally():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    return server.accept()[0] and client
def send_event():
    import urllib.request
    hook = config["webhook_config"][-1]
    event = json.dumps({"type": "lifecycle.stage", "stage": {"key": "a", "label": "b", "status": "running"}}).encode()
    return urllib.request.urlopen(urllib.request.Request(hook["callback_url"], event, {"X-API-Key": hook["auth_token"]})).status
if __name__ == "__main__":
    works("bundle", lambda: config["output_dir"])
    works("output", lambda: write(config["output_dir"] + "/weights.safetensors"))
    works("working-directory", lambda: os.listdir(".") == [] and write("cache"))
    works("home", lambda: write(os.path.expanduser("~/cache")))
    works("temporary", lambda: tempfile.NamedTemporaryFile().write(b"x"))
    works("shared-memory", shared)
    works("processes", pool)
    works("threads", threads)
    works("thread-names", name_thread)
    works("user-name", lambda: __import__("getpass").getuser())
    works("programs", run_script)
    works("network", connect_locally)
    works("names", lambda: socket.gethostbyname("localhost"))
    works("certificates", lambda: __import__("ssl").create_default_context().cert_store_stats()["x509_ca"] > 0)
    works("events", send_event)
    works("user", lambda: os.getuid() >= 0 and os.path.expanduser("~"))
    works("given", lambda: write("SHARED/given"))
    works("topology", lambda: os.listdir("/sys/devices/system/cpu"))
    works("stop-file", lambda: os.listdir(os.path.dirname(os.environ["SIMPLETUNER_STOP_FILE"])) == [])
