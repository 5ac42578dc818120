"""Checks of a large model are made once for all runs; of a small one, or of another model, anew."""

import pytest
import torch
from scoring_cases import tiny

from partway.learning import layout_check
from partway.learning.layout_check import checked_layout
from partway.sampling import samplers
from partway.sampling.local_engine import TreeSampler
from partway.sampling.samplers import checked_sampler
from partway.shortcuts import found_out


@pytest.fixture
def checks(monkeypatch, tmp_path):
    """Which checks are made, with a cache of their own, while every model counts as large."""
    monkeypatch.setenv("PARTWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(found_out, "LARGE", 0)
    made = []

    def counted(module):
        check = module._flaw

        def flaw(model, way, pad_id):
            made.append(way.name)
            return check(model, way, pad_id)

        monkeypatch.setattr(module, "_flaw", flaw)

    counted(layout_check)
    counted(samplers)
    return made


def test_a_large_model_is_checked_once_and_found_the_same_again(checks):
    first = checked_layout(tiny("bloom")), checked_sampler(tiny("bloom"), TreeSampler())
    assert len(checks) > 2, "its fallbacks are checked too"
    checks.clear()
    assert (checked_layout(tiny("bloom")), checked_sampler(tiny("bloom"), TreeSampler())) == first
    assert checks == []


def test_other_weights_are_checked_anew(checks):
    checked_layout(tiny("llama"))
    checks.clear()
    other = tiny("llama")
    with torch.no_grad():
        other.lm_head.weight += 1.0
    checked_layout(other)
    assert checks == ["tree"]


def test_another_attention_is_checked_anew(checks):
    checked_layout(tiny("llama"))
    checks.clear()
    checked_layout(tiny("llama", "eager"))
    assert checks


def test_a_small_model_leaves_nothing_in_the_cache(checks, monkeypatch, tmp_path):
    monkeypatch.setattr(found_out, "LARGE", 20_000_000)
    checked_layout(tiny("llama"))
    assert not (tmp_path / "cache").exists()


def test_a_damaged_or_unwritable_cache_only_costs_the_check(checks, monkeypatch, tmp_path):
    checked_layout(tiny("llama"))
    for file in (tmp_path / "cache" / "checks").iterdir():
        file.write_text("{")
    checks.clear()
    assert checked_layout(tiny("llama")).name == "tree"
    assert checks == ["tree"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PARTWAY_CACHE", str(tmp_path / "file"))
    assert checked_layout(tiny("llama")).name == "tree"
