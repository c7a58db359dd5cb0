"""Java options: ours are defaults, and an operator's replace them, so that no two of one kind contradict each other."""

import pytest

from applier.spark.java_options import with_defaults

OURS = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -Xmn256m"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", OURS),
        ("-Dsome=thing -XX:+UseGCOverheadLimit", f"{OURS} -Dsome=thing -XX:+UseGCOverheadLimit"),
        ("-XX:+UseG1GC", "-XX:TieredStopAtLevel=1 -XX:+UseG1GC"),
        ("-XX:-UseParallelGC", "-XX:TieredStopAtLevel=1 -XX:-UseParallelGC"),
        ("'-XX:+UseZGC' -Dx=1", "-XX:TieredStopAtLevel=1 '-XX:+UseZGC' -Dx=1"),
        ("-Xmn1g", "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -Xmn1g"),
        ("-XX:NewRatio=1", "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -XX:NewRatio=1"),
        ("-XX:MaxNewSize=99m", "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -XX:MaxNewSize=99m"),
        ("-XX:TieredStopAtLevel=4", "-XX:+UseParallelGC -Xmn256m -XX:TieredStopAtLevel=4"),
        ("-XX:-TieredCompilation", "-XX:+UseParallelGC -Xmn256m -XX:-TieredCompilation"),
        ("-Xint -XX:+UseSerialGC", "-Xint -XX:+UseSerialGC"),
    ],
)
def test_an_option_of_the_operator_replaces_ours_of_the_same_kind(given, expected):
    assert with_defaults(given) == expected


def test_an_option_that_the_jvm_takes_from_elsewhere_replaces_ours_and_is_not_repeated():
    assert with_defaults("-Dx=1", ["", "-XX:+UseSerialGC -Dy=2"]) == "-XX:TieredStopAtLevel=1 -Dx=1"
