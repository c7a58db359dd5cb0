"""The simple protocol of TiCDC, in JSON and in Avro: bytes in, events out, and the schemas that they need (canal_json_and_simple.md 4).

May import ``model``, ``ddl`` and ``sources.port``. Read ``decoder`` first: it is what others are given; then ``schema_log``.
"""

from applier.sources.simple.decoder import SimpleDecoder

__all__ = ["SimpleDecoder"]
