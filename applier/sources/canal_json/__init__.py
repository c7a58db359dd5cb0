"""TiCDC's canal-json with ``enable-tidb-extension=true``: bytes in, events out, nothing else (DESIGN.md 17).

May import ``model``, ``ddl`` and ``sources.port``. Read ``decoder`` first: it is what others are given. Two ways agree on every record:
``CanalJsonDecoder.events`` for whole events, ``CanalJsonPlacer`` and ``image_decoder`` for the applier's rows.
"""

from applier.sources.canal_json.decoder import CANAL_JSON, CanalJsonDecoder

__all__ = ["CANAL_JSON", "CanalJsonDecoder"]
