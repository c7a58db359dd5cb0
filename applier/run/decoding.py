"""How the records of a source are read to be applied: what the configuration says about rows that were too large for Kafka."""

from applier.config import Config
from applier.sources.factory import decoder_of
from applier.sources.port import Decoder


def decoder_for(config: Config) -> Decoder:
    """Return the decoder. ConfigError: a package is missing that reads the claim-check storage, or an option of it is wrong."""
    return decoder_of(config.source.claim_check.settings(), config.source.selection())
