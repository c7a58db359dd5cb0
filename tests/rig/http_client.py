"""Asks an HTTP server of the program."""

from http.client import HTTPConnection

PATIENCE_S = 60


def get(address, path, method="GET"):
    host, _, port = address.rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=PATIENCE_S)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read().decode()
    finally:
        connection.close()
