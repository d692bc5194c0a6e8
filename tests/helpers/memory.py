"""How much memory a session takes."""


def peak_memory(db):
    """Returns the most memory of its own that a session has used, in MB."""
    pid = db.info.backend_pid
    with open(f"/proc/{pid}/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return (int(lines["VmHWM"].split()[0]) - int(lines["RssShmem"].split()[0])) / 1024
