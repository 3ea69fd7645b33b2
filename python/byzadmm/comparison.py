"""A comparison in one call: algorithms x attacks x numbers of Byzantine workers x partitions x seeds."""

from __future__ import annotations

import os
from typing import Any

from byzadmm.datasets import Dataset
from byzadmm.study.plan import make_plan
from byzadmm.study.run import OnEvaluation, carry_out
from byzadmm.study.study import Study
from byzadmm.training.run import Progress

__all__ = ["compare"]


def compare(
    dataset: Dataset | str | None,
    partition: Any = "iid",
    algorithms: Any = None,
    attacks: Any = "sign-flip",
    n_workers: int | None = None,
    n_byzantine: Any = None,
    *,
    seeds: Any = 5,
    iterations: int | None = None,
    eval_every: int | None = None,
    delays: Any = None,
    until: float | None = None,
    arrivals: int | None = None,
    eval_time: float | None = None,
    graph: Any = None,
    byzantine: Any = None,
    loss: Any = None,
    validation: Any = None,
    tune: Any = None,
    progress: bool | Progress | None = None,
    on_evaluation: OnEvaluation | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    **settings: Any,
) -> Study:
    """Train with every algorithm under every attack, side by side, and return all results.

    Parameters
    ----------
    dataset : Dataset, name or None
        A name of ``byzadmm data list``; None with a loss that is an object.
    partition : name, function, list of index arrays, or a list or dict of these
        "iid", "by-label", "dirichlet:0.3", "gamma-similarity:0.5"; ``f(labels, n_workers, seed)``; or the samples of
        every worker. With a name or a function every seed has a partition of its own. With ``among=regular`` in a name
        ("by-label:among=regular") regular workers alone share the samples, and each Byzantine one has all of them.
    algorithms : name, algorithm, rule, or a list or dict of these
        "admm", "rsa", "ideal", "krum", "nnm+trimmed-mean", with the catalogue's settings for the data; an Algorithm; a
        function or an object of ``byzadmm.aggregators``, for SGD with that rule. A rule that takes ``f`` and has none
        gets the number of Byzantine workers of its cell. The keys of a dict are labels. By default what the paper
        compares, on a graph Ideal SGD, DADMM, DRSA, gossip, BRIDGE-T and IOS.
    attacks : None, name, attack, function, or a list or dict of these
        "sign-flip", "gaussian:std=50", "none", ``attacks.ALIE()``, or any attack that ``simulate`` takes.
    n_workers : int, optional
        By default 20, or the number of index arrays.
    n_byzantine : int or list of int, optional
        By default two fifths of the workers, on a graph a fifth: the last ones.
    seeds : int or list of int
        So many seeds from 0 on, or these: of partition, batches, attack and rule.
    iterations, eval_every : int, optional
        By default 1000, or as many as the other ends of runs with delays allow, and 50.
    delays : name, number, delay or function, optional
        How long workers take: "exponential", "stragglers:0.2,10+exponential:2", one of ``byzadmm.delays``. Every
        algorithm, also one that works in rounds, then runs through :func:`byzadmm.asynchronous.simulate`, where
        ``iterations`` are updates of the model. Asynchronous algorithms need delays.
    until, arrivals, eval_time : number, optional
        As there: simulated time or number of messages at which runs end, and the time between evaluations. With
        ``until``, and neither ``eval_time`` nor ``eval_every``, all runs are evaluated at 20 times, the same ones.
    graph : name, Graph or Flaky, optional
        Train without a master: "ring:k=2", "erdos-renyi:0.7,seed=1", "flaky:0.8+complete", one of ``byzadmm.graphs``.
        Every run goes through :func:`byzadmm.decentralized.simulate`. Names of algorithms then mean what
        :func:`byzadmm.catalogue.decentralized` says; rules by name, and those that declare nothing, take as many
        Byzantine neighbors into account as each node has. A random graph is drawn until the regular nodes are
        connected, and is the same for all seeds.
    byzantine : list of int, optional
        The Byzantine workers or nodes, in place of the last ``n_byzantine``.
    loss : None, name, loss, class or function
        None: softmax regression, or least squares for data with real targets. A class of ``byzadmm.losses`` or a
        function makes the loss of every run, called as ``loss(dataset, parts, batch_size=, seed=)``. An object has its
        own samples, batches and seed; every run has a copy of it.
    validation : int or rows of the training set, optional
        Clean samples of the master, in no worker's part: so many, drawn by the seed, or these. By default 200 if one of
        the algorithms needs them, else none.
    tune : int or dict, optional
        Search the settings of every algorithm first, with so many trials per setting searched, on samples set aside
        from the training set, under the first attack (:func:`byzadmm.study.search.tuned`). A dict has ``budget`` and
        more.
    progress : None, True or callable
        One bar for all runs; a callable gets (iterations done, total).
    on_evaluation : callable
        As in ``simulate``; the metrics have the cell's "algorithm", "attack", "n_byzantine", "partition" and "seed"
        too. Returning True stops that run. It is called in several threads.
    checkpoint : path, optional
        A folder for results and states. The same call after a crash goes on; a call with more algorithms, attacks or
        seeds runs only those. A function counts by its name and code, and by those of your modules that it uses.
    jobs : int, optional
        How many runs at once; by default one per CPU.
    **settings
        Further arguments of ``simulate`` for all runs: ``batch_size``, ``rho``, ``dtype``, ``local_steps``; on a graph
        of ``decentralized.simulate``: ``rho`` of each node, ``x_init``...

    Returns
    -------
    Study
        Runs that fail, and algorithms that do not tolerate as many Byzantine workers, are in ``missing`` with the
        reason; the others are not affected. If all fail, the first error is raised.

    Examples
    --------
    >>> import byzadmm
    >>> from byzadmm import attacks
    >>> def drift(messages, *, x0, k, byzantine, rng, algorithm):
    ...     return messages[byzantine] + 1.0
    >>> study = byzadmm.compare("digits", algorithms=["ideal", "krum"], attacks=[None, attacks.ALIE(), drift], seeds=2,
    ...                         n_byzantine=[4, 8], iterations=100)
    >>> study
    <Study digits: 2 algorithms x 3 attacks x 2 numbers of attackers x 2 seeds, 24 of 24 runs>
    >>> bool(study.finals(algorithm="ideal", attack="drift").mean() > 0.8)
    True
    """
    plan = make_plan(
        dataset,
        partition,
        algorithms=algorithms,
        attacks=attacks,
        n_workers=n_workers,
        n_byzantine=n_byzantine,
        seeds=seeds,
        loss=loss,
        validation=validation,
        iterations=iterations,
        eval_every=eval_every,
        delays=delays,
        until=until,
        arrivals=arrivals,
        eval_time=eval_time,
        graph=graph,
        byzantine=byzantine,
        **settings,
    )
    running: dict[str, Any] = {"jobs": jobs, "progress": progress, "checkpoint": checkpoint}
    found: dict[str, dict[str, float]] = {}
    if tune is not None:
        from byzadmm.study.search import tuned

        plan, found = tuned(plan, tune, **running)
    study = carry_out(plan, on_evaluation=on_evaluation, **running)
    study.tuned = found
    return study
