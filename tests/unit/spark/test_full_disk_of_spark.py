"""A full disk of Spark's has its own error and remedy."""

import pytest
from py4j.protocol import Py4JJavaError

from applier.model.errors import JobAborted
from applier.replica.recovery import is_transient
from applier.spark.failure import job_failed


class Failed(Py4JJavaError):
    """Spark's error, as far as its text is read."""

    def __init__(self, text):
        self.java_exception = text


@pytest.mark.parametrize("words", ["java.io.IOException: No space left on device", "OSError: [Errno 122] Disk quota exceeded"])
def test_a_job_that_fails_for_lack_of_disk_space_names_sparks_directory(words):
    error = job_failed(Failed(f"Job aborted due to stage failure: Task 0 failed 4 times: {words}\n\tat x"))
    assert isinstance(error, JobAborted)
    assert "no space left" in error.message
    assert "spark.local.dir" in error.remedy
    assert words in error.facts["cause"]
    assert is_transient(error)
