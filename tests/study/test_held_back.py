"""Samples that a study holds back for the master."""

from __future__ import annotations

import numpy as np
import pytest

from byzadmm import SGD, datasets, partition, steps
from byzadmm.study.held_back import SAMPLES, held_back
from byzadmm.study.plan import make_plan
from byzadmm.study.search import tuned


class Validating(SGD):
    """SGD that asks for samples of the master."""

    @property
    def validates(self) -> bool:
        return True


DATA = datasets.load("digits")


def shares(**changes):
    """Parts and held samples of every run, by seed."""
    plan = make_plan(DATA, **{"algorithms": [SGD()], "seeds": 2, "n_workers": 5, "n_byzantine": 1} | changes)
    assert all(not isinstance(run, str) for run in plan.runs.values())
    return {cell.seed: (np.concatenate(run["parts"]), run.get("validation")) for cell, run in plan.runs.items()}


def by_hand(labels, m, seed):
    return np.array_split(np.arange(len(labels)), m)


@pytest.mark.parametrize("how", ["iid", "dirichlet:0.5", by_hand])
def test_held_samples_are_in_no_part(how):
    found = shares(partition=how, validation=100)
    for seed, (parts, held) in found.items():
        assert len(held) == 100
        assert not np.intersect1d(parts, held).size, (how, seed)
        assert len(np.unique(parts)) == len(parts), (how, seed)
        if how is by_hand:
            assert sorted([*parts, *held]) == list(range(len(DATA.train_y)))
    assert not np.array_equal(found[0][1], found[1][1]), "every seed has samples of its own"


def test_only_algorithms_that_need_samples_hold_some_back():
    assert shares()[0][1] is None
    assert len(shares(algorithms=[SGD(), Validating()])[0][1]) == SAMPLES
    parts = partition.iid(DATA.train_y, 6, seed=0)
    free = parts.pop()
    assert np.isin(shares(partition=parts, validation=30)[0][1], free).all()
    np.testing.assert_array_equal(shares(partition=parts, validation=free[::-1])[0][1], np.sort(free))


def test_more_samples_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="validation: expected at most 1436 free rows, got 1437"):
        held_back(1437, DATA, None, 0)
    with pytest.raises(ValueError, match="validation: expected at most 0 free rows"):
        shares(partition=partition.iid(DATA.train_y, 5, seed=0), validation=1)


def test_a_search_holds_them_back_too(monkeypatch):
    monkeypatch.setattr(SGD, "validates", Validating.validates)
    plan = make_plan(DATA, algorithms=[SGD(step=steps.power(1.0))], seeds=1, n_workers=5, n_byzantine=0, iterations=20)
    searched, best = tuned(plan, 2)
    assert set(best) == {"sgd"}, "a trial without them would have failed"
    (run,) = searched.runs.values()
    assert len(run["validation"]) == SAMPLES
