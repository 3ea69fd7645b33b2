"""The record of an experiment: one list of plain settings, their defaults and checks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from byzadmm import SGD, engines, simulate
from byzadmm.training.experiment import DEFAULTS, Experiment, check_settings
from support.runs import quadratic


def test_simulate_documents_the_defaults_of_the_record() -> None:
    documented = {name: item.default for name, item in inspect.signature(simulate).parameters.items()}
    assert {name: documented[name] for name in DEFAULTS} == DEFAULTS


def test_the_record_has_every_plain_setting() -> None:
    run = Experiment(None, None, algorithm=SGD(), loss=quadratic(), batch_size=7, seed=3)
    expected = check_settings(batch_size=7, seed=3)
    assert {name: getattr(run, name) for name in DEFAULTS} == expected
    assert (run.batch_size, run.seed, run.rho, run.dtype) == (7, 3, 0.01, np.float32)
    assert engines.Experiment is Experiment


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"colour": "red"}, TypeError, r"Experiment\(\) got an unexpected keyword argument 'colour'"),
        ({"batch_size": 0}, ValueError, "batch_size: expected an integer >= 1, got 0"),
        ({"rho": 1e60}, ValueError, r"rho: expected a finite number >= 0.0 in float32, got 1e\+60"),
        ({"record": "all"}, ValueError, "record: expected one of trajectory; got 'all'"),
        ({"dtype": "float16"}, ValueError, "dtype: expected float32 or float64, got 'float16'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_settings(**wrong)
    with pytest.raises(error, match=message):
        Experiment(None, None, algorithm=SGD(), loss=quadratic(), **wrong)
