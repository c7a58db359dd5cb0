"""The window (A, W]."""

from applier.coordinator.window import Window


def test_the_watermark_is_never_below_the_checkpoint():
    window = Window(5, 0, None)
    assert (window.watermark, window.is_open, window.is_fresh) == (5, False, False)
    window.close(3)
    assert (window.watermark, window.is_open, window.is_fresh) == (5, False, True)
    window.close(9)
    assert (window.watermark, window.is_open) == (9, True)
    window.checkpoint_ts = 9
    assert not window.is_open


def test_the_watermark_stops_where_a_catch_up_ends():
    window = Window(5, 0, 7)
    window.close(6)
    assert (window.watermark, window.is_done) == (6, False)
    window.close(9)
    assert (window.watermark, window.is_done) == (7, True)
    assert (window.is_beyond_need(6), window.is_beyond_need(7)) == (False, True)


def test_without_an_end_a_window_is_never_done():
    window = Window(5, 0, None)
    window.close(2**64 - 1)
    assert not window.is_done


def test_rows_at_the_starting_point_came_with_the_dump():
    window = Window(5, 5, None)
    assert (window.floor_ts, window.has_history) == (6, False)
    window.checkpoint_ts = 8
    assert (window.floor_ts, window.has_history) == (8, True)
