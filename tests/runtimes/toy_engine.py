"""Stands for an engine: a TCP server with children that behaves as badly as it is told to. `python -m toy_engine`."""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CHILD = "import signal, time\nif {deaf}: signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--children", type=int, default=0)
    parser.add_argument("--own-session", action="store_true", help="children open sessions of their own, untagged")
    parser.add_argument("--bare", action="store_true", help="children get no environment")
    parser.add_argument("--deaf", action="store_true", help="SIGTERM has no effect, on children neither")
    parser.add_argument("--exit", type=int)
    parser.add_argument("--say-bytes", type=int, default=0)
    parser.add_argument("--dump", help="write the environment here")
    asked = parser.parse_args()
    print("toy engine starts", flush=True)
    if asked.dump:
        Path(asked.dump).write_text("\n".join(f"{key}={value}" for key, value in os.environ.items()))
    if asked.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(asked.children):
        env = {} if asked.own_session or asked.bare else None
        subprocess.Popen(
            [sys.executable, "-c", CHILD.format(deaf=asked.deaf)], env=env, start_new_session=asked.own_session
        )
    line = 0
    while asked.say_bytes > 0:
        asked.say_bytes -= 64
        print(f"{line:062d}#", flush=True)
        line += 1
        time.sleep(0.0005)
    if asked.exit is not None:
        print("toy engine ends", flush=True)
        os._exit(asked.exit)
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((asked.address, asked.port))
        server.listen()
        print("toy engine serves", flush=True)
        while True:
            connection, _ = server.accept()
            connection.close()


if __name__ == "__main__":
    main()
