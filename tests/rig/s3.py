"""A real S3-compatible server (moto's) on the loopback interface, in this process; and one that answers wrong in chosen ways."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from moto.moto_server.threaded_moto_server import ThreadedMotoServer

BUCKET = "changefeed"
OPTIONS = {"key": "reader", "secret": "reader-secret"}


class S3:
    """The server. ``options``: what fsspec needs to reach it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    @property
    def options(self) -> dict[str, object]:
        return OPTIONS | {"endpoint_url": self.endpoint}

    @property
    def storage(self) -> str:
        return f"s3://{BUCKET}/large"

    def put(self, name: str, content: bytes) -> None:
        self._files().pipe_file(f"{BUCKET}/large/{name}", content)

    def create_bucket(self) -> None:
        with suppress(FileExistsError):  # moto keeps what a server of this process had
            self._files().mkdir(BUCKET)

    def _files(self):
        from s3fs import S3FileSystem  # noqa: PLC0415 - an extra of the applier; only tests of S3 need it

        return S3FileSystem(**self.options, skip_instance_cache=True)


@contextmanager
def s3_server(port: int = 0) -> Iterator[S3]:
    """Run the server with one empty bucket, on a free port or on ``port``."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        s3 = S3(f"http://{host}:{port}")
        s3.port = port
        s3.create_bucket()
        yield s3
    finally:
        server.stop()


@contextmanager
def answering(answer) -> Iterator[S3]:
    """Run a server that gives ``answer(number of the request, path)``: (status, headers, body) to each GET; None: it hangs up."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            found = answer(len(requests), self.path)
            if found is None:
                self.connection.close()
                return
            status, headers, body = found
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - their names

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests = requests
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        s3 = S3(f"http://127.0.0.1:{server.server_port}")
        s3.requests = requests
        yield s3
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
