"""Sessions: a server that accepts connections and says nothing is not waited for longer than the settings allow."""

import socket

import pytest

from applier.model.errors import RetryableSinkError
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings


def test_a_server_that_is_frozen_counts_as_lost_after_the_time_that_the_settings_give_it():
    with socket.socket() as frozen:
        frozen.bind(("127.0.0.1", 0))
        frozen.listen()  # connections are accepted by the kernel, and nobody ever answers them
        url = f"mysql+pymysql://applier@127.0.0.1:{frozen.getsockname()[1]}/"
        with pytest.raises(RetryableSinkError, match="connecting"):
            open_session(SinkSettings(url=url, lock_wait_timeout_s=1, silence_s=0), Purpose.CONTROL)
