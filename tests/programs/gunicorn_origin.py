"""HTTP/1.1 server (Debian's gunicorn) that prints every request as HOST METHOD TARGET, what it cannot read as MALFORMED,
and answers with its name and the same.

Arguments: name, port, and "lenient" for the settings that gunicorn calls dangerous.
"""

import sys

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

name, port, manner = sys.argv[1:4]


def say(line):
    # In one piece: there are several threads.
    sys.stdout.write(line + "\n")


def answer(environ, start_response):
    environ["wsgi.input"].read()
    seen = "\t".join([environ.get("HTTP_HOST", "-"), environ["REQUEST_METHOD"], environ["RAW_URI"]])
    say(seen)
    body = f"[{name}\t{seen}]".encode("latin-1")
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


class Complaints(Logger):
    def debug(self, message, *_, **__):
        if message.startswith("Invalid request"):
            say(f"MALFORMED {message!r}")


class Application(BaseApplication):
    def load_config(self):
        settings = {
            "bind": f"127.0.0.1:{port}",
            # The other workers of gunicorn itself close every connection.
            "worker_class": "gthread",
            "threads": 8,
            "keepalive": 600,
            "logger_class": Complaints,
            "when_ready": lambda _: say("ready"),
        }
        if manner == "lenient":
            settings |= {"tolerate_dangerous_framing": True, "strip_header_spaces": True}
        for key, value in settings.items():
            self.cfg.set(key, value)

    def load(self):
        return answer


Application().run()
