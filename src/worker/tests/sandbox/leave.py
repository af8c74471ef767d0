if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3): os.close(fd)
        os.execve("/bin/sleep", ["sleep", "4242"], {})
    os._exit(0)
print("gone", "held", flush=True)
