import dataclasses
import gzip
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from small_data import GZ, SMALL, save

from elephant_nn.data.formats import to_idx


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Server(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if "locked" in self.path:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="locked"')
            self.end_headers()
            return None
        if "nonsense" in self.path:
            self.wfile.write(b"not a reply\r\n\r\n")
            return None
        if "chunked" in self.path:
            self.protocol_version = "HTTP/1.1"
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"100\r\nonly a little")
            self.close_connection = True
            return None
        if "cut" not in self.path:
            return super().do_GET()
        content = GZ[self.path.rpartition("/")[2]]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        return None


@pytest.fixture
def serve():
    """Serve a folder on a loopback address."""
    servers = []

    def start(folder):
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(folder)))
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def served(tmp_path, serve):
    """A loopback address: intact files under /good, others under /wrong, /garbage and /cut."""
    name = "train-images-idx3-ubyte"
    other = dataclasses.replace(SMALL, x_train=255 - SMALL.x_train)
    flipped = bytearray(GZ[f"{name}.gz"])
    flipped[12] ^= 0xFF
    changes = {
        "good": GZ[f"{name}.gz"],
        "wrong": gzip.compress(dict(to_idx(other))[name]),
        "garbage": b"<html>moved</html>",
        "flipped": bytes(flipped),
    }
    for place, content in changes.items():
        save(tmp_path / "served" / place, {**GZ, f"{name}.gz": content})
    return serve(tmp_path / "served")
