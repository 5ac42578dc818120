from straightline import BoundedCache


def lengths(max_bytes: int) -> BoundedCache[str, str]:
    return BoundedCache(max_bytes, lambda _, value: len(value))


def test_what_does_not_fit_any_more_pushes_out_what_was_not_used_for_longest():
    cache = lengths(100)
    for name in "abcdef":
        cache.put(name, name * 20)
        cache.get("a")  # used again and again
    assert cache.get("a") == "a" * 20
    assert cache.get("b") is None
    assert cache.get("f") == "f" * 20
    assert len(cache) <= 5


def test_the_bytes_of_a_cache_never_exceed_its_bound():
    cache = lengths(1_000)
    for number in range(500):
        cache.put(str(number), "x" * (number % 90))
        held = {**cache._older, **cache.recent}
        assert sum(map(len, held.values())) <= 1_000
        assert str(number) in held


def test_one_value_that_would_push_out_all_others_is_not_kept():
    cache = lengths(100)
    cache.put("small", "x" * 10)
    cache.put("large", "x" * 51)
    assert cache.get("large") is None
    assert cache.get("small") is not None
