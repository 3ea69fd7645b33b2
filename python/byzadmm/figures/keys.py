"""Every key of a settings file: how it is checked, its default and its meaning.

The parser takes no key that is not here; the comments of ``byzadmm settings`` and ``docs/settings.md`` are made of it.
"""

from __future__ import annotations

from byzadmm import catalogue
from byzadmm._internal.validation import check_real
from byzadmm.figures._toml import (
    REQUIRED,
    Key,
    check_count,
    check_flag,
    check_numbers,
    check_positive,
    check_range,
    check_string,
)
from byzadmm.figures._values import (
    QUADRATIC,
    as_it_is,
    check_counts,
    check_dataset,
    check_f,
    check_factor,
    check_finals,
    check_listed_partitions,
    check_names,
    check_natural,
    check_partitions,
    check_rho,
    check_share,
    check_step,
    check_steps,
    check_tables,
    check_workers,
    choice_of,
    training,
)
from byzadmm.study.held_back import SAMPLES
from byzadmm.training.experiment import DEFAULTS

__all__ = ["CLOCK", "SECTIONS", "TRAINING", "markdown"]

#: Settings of an experiment that a file may have; ``training.experiment`` has their defaults and checks.
TRAINING = ("iterations", "eval_every", "batch_size", "rho", "local_steps", "participation")

#: Settings of runs with delays.
CLOCK = ("delays", "until", "arrivals", "eval_time")

_STEP_WORDS = "{ constant = a }, { power = [c, p] }, { inv_sqrt = [c0, c1] }, { inv_linear = [c, b] }"
_ONE_PER_WORKER = "one number per worker"

#: Section -> key -> Key. The first section has the keys before any table; NAME stands for any name.
SECTIONS: dict[str, dict[str, Key]] = {
    "": {
        "title": Key(check_string, None, "string", "any", "heading of table and picture", "name of the file", '""'),
        "note": Key(check_string, "", "string", "any", "remark for the report"),
        "cause": Key(check_string, "", "string", "any", "what drives the result, for the report"),
        "dataset": Key(
            check_dataset,
            REQUIRED,
            "string",
            f"see `byzadmm data list`, or {QUADRATIC}",
            "data set, or the table [quadratic]",
        ),
        "scale": Key(
            check_factor,
            None,
            "number or string",
            "> 0, raw, unit, standard, symmetric",
            "factor of every feature, or how to scale them",
            "that of the data set",
            '"standard"',
        ),
        "loss": Key(
            choice_of(catalogue.LOSSES),
            None,
            "string",
            ", ".join(catalogue.LOSSES),
            "what workers minimize",
            "softmax, or least-squares for real targets",
            '"softmax"',
        ),
        "partition": Key(
            check_partitions,
            "iid",
            "string or list",
            "iid, by-label, dirichlet:ALPHA, gamma-similarity:GAMMA; with among=regular, as in by-label:among=regular",
            "how samples are divided among workers, or regular ones; a plot for each of a list",
        ),
        "alpha": Key(
            check_positive,
            catalogue.PARTITIONS["dirichlet"].settings["alpha"],
            "number",
            "> 0",
            "ALPHA of a partition that is written dirichlet alone",
        ),
        "n_workers": Key(check_count, 20, "integer", ">= 1", "workers in all, Byzantine ones included"),
        "n_byzantine": Key(check_natural, 0, "integer", "0 .. n_workers", "the last so many workers are Byzantine"),
        "byzantine": Key(
            check_workers,
            None,
            "list of integers",
            "0 .. n_workers - 1",
            "which workers are Byzantine",
            "the last `n_byzantine`",
            "[3, 9]",
        ),
        "graph": Key(
            check_string,
            None,
            "string",
            "see `byzadmm list graphs`, or FILE.py:NAME",
            "who hears whom, without a master; decentralized algorithms need it",
            "none: a master",
            '"ring:k=2"',
        ),
        "x_init": Key(
            check_positive,
            None,
            "number",
            "> 0",
            "nodes of a graph start at normal numbers with this standard deviation",
            "at zero, or where the loss says",
            "6.0",
        ),
        "iterations": Key(
            training(check_count),
            None,
            "integer",
            ">= 1",
            "length of a run; with delays, updates of the model",
            "required without `until` or `arrivals`",
            "1000",
        ),
        "eval_every": Key(
            training(),
            None,
            "integer",
            ">= 1",
            "iterations between evaluations",
            "required without `until` or `eval_time`",
            "50",
        ),
        "delays": Key(
            as_it_is,
            None,
            "string or number",
            "see `byzadmm list delays`, FILE.npz, FILE.py:NAME",
            "simulated time that a worker takes for a job; asynchronous algorithms need it",
            "none: training in rounds",
            '"stragglers:0.2,10"',
        ),
        "until": Key(check_positive, None, "number", "> 0", "simulated time at which runs end", "none", "500.0"),
        "arrivals": Key(check_count, None, "integer", ">= 1", "messages after which runs end", "none", "10000"),
        "eval_time": Key(
            check_positive,
            None,
            "number",
            "> 0",
            "simulated time between evaluations",
            "a 20th of `until`, if `eval_every` is not given",
            "25.0",
        ),
        "batch_size": Key(training(), DEFAULTS["batch_size"], "integer", ">= 1", "samples per worker and iteration"),
        "rho": Key(
            check_rho,
            DEFAULTS["rho"],
            "number or list",
            ">= 0",
            "weight of the master's regularizer; on a graph of every node's, or one for each",
        ),
        "local_steps": Key(
            training(), DEFAULTS["local_steps"], "integer", ">= 1", "steps of a worker in every round (SGD)"
        ),
        "participation": Key(
            training(), DEFAULTS["participation"], "number", "0 < p <= 1", "share of the workers drawn for every round"
        ),
        "validation": Key(
            check_count,
            None,
            "integer",
            ">= 1",
            "training samples that the master holds, and no worker",
            f"{SAMPLES} if an algorithm needs them, else none",
            str(SAMPLES),
        ),
        "seeds": Key(check_count, None, "integer", ">= 1", "the most seeds that it is run with", "no limit", "3"),
        "sweep": Key(
            check_numbers,
            None,
            "list of numbers",
            "> 0",
            "a curve of every ADMM for each of these lam",
            "none",
            "[0.01, 0.1]",
        ),
        "attack": Key(
            as_it_is,
            "none",
            "string, table or list",
            "see `byzadmm list attacks`, or FILE.py:NAME",
            "what Byzantine workers send; a plot for each of a list",
        ),
        "algorithms": Key(as_it_is, REQUIRED, "tables", "[algorithms.NAME]", "one table per curve"),
        "heat_map": Key(
            as_it_is, None, "table", "below", "final accuracies, algorithms by attacks, not curves", "none"
        ),
        "quadratic": Key(as_it_is, None, "table", "below", "the workers' losses, for dataset = quadratic", "none"),
        "published": Key(as_it_is, None, "tables", "[published.NAME]", "published curves to compare with", "none"),
        "tuning": Key(as_it_is, None, "table", "below", "how `byzadmm tune` searches", "none"),
    },
    "attack": {
        "name": Key(
            check_string,
            REQUIRED,
            "string",
            "see `byzadmm list attacks`, none, or FILE.py:NAME",
            "the attack; its settings are further keys",
            example='"sign-flip"',
        ),
    },
    "algorithms.NAME": {
        "kind": Key(
            check_string,
            None,
            "string",
            "see `byzadmm list algorithms`; settings as in async-admm:barrier=10",
            "the algorithm",
            "NAME, without -blind or -tuned at its end",
            '"sgd"',
        ),
        "label": Key(check_string, None, "string", "any", "name in the legend", "that of the kind or rule", '"ADMM"'),
        "printed": Key(
            check_flag,
            False,
            "boolean",
            "true, false",
            "numbers of the paper or its authors: a search leaves them alone",
        ),
        "lam": Key(
            check_positive, REQUIRED, "number", "> 0", "weight of the TV norm (ADMM, RSA, DADMM, DRSA)", example="0.05"
        ),
        "beta": Key(check_positive, REQUIRED, "number", "> 0", "penalty parameter (ADMM, DADMM)", example="0.5"),
        "slope": Key(
            check_positive,
            None,
            "number",
            "> 0",
            "steps 1/(beta n + slope sqrt k) of nodes with n neighbors (DADMM)",
            "required (DADMM: or step)",
            "0.3",
        ),
        "step": Key(
            check_steps,
            REQUIRED,
            "table",
            f"{_STEP_WORDS}, or on a graph a list",
            "step size at iteration k; on a graph or one per node",
            "required (RSA: or master_step and worker_step; DADMM: or slope)",
            "{ power = [0.1, 0.5] }",
        ),
        "master_step": Key(
            check_step,
            REQUIRED,
            "table",
            "as step",
            "step size of the master (ADMM, RSA)",
            "required by ADMM",
            "{ inv_sqrt = [10, 1] }",
        ),
        "worker_step": Key(
            check_step,
            REQUIRED,
            "table",
            "as step",
            "step size of the workers (ADMM, RSA)",
            "required by ADMM",
            "{ inv_sqrt = [0.5, 1] }",
        ),
        "rule": Key(
            check_string,
            "mean",
            "string",
            "see `byzadmm list rules`; chains as in nnm+krum",
            "rule (kind = sgd, dsgd)",
            "mean, of dsgd gossip",
        ),
        "f": Key(
            check_f,
            0,
            "integer, list or string",
            ">= 0; on a graph one per node, or exact: all that it has",
            "declared number of Byzantine workers or neighbors",
            "0, in a heat map that of the map; on a graph exact",
        ),
        "order": Key(
            choice_of(dict.fromkeys(("adapt-first", "combine-first"))),
            None,
            "string",
            "adapt-first, combine-first",
            "whether nodes step first or combine models first (DSGD with any rule)",
            "that of the rule",
            '"adapt-first"',
        ),
        "momentum": Key(check_real, 0.0, "number", "0 <= momentum < 1", "workers' momentum (SGD with any rule)"),
        "variance_reduction": Key(
            check_string, None, "string", "saga, lsvrg", "Byrd-SAGA or LSVRG (SGD with any rule)", "none", '"saga"'
        ),
        "filter": Key(
            check_string,
            None,
            "string",
            "see `byzadmm list filters`; settings as in zeno:b=8",
            "filter before the rule (SGD)",
            "none",
            '"zeno:b=8"',
        ),
        "coding": Key(
            check_string,
            None,
            "string",
            "see `byzadmm list codes`; settings as in cyclic:f=2",
            "redundant batches (SGD)",
            "none",
            '"cyclic:f=2"',
        ),
        "iterations": Key(
            check_count,
            None,
            "integer",
            ">= 1",
            "length of its runs in a heat map, evaluated as often as the others",
            "that of the file",
            "500",
        ),
        "validation": Key(
            check_share,
            None,
            "number",
            "0 .. 1",
            "accuracy on validation samples, written by `byzadmm tune`",
            "none",
            "0.9",
        ),
        "where": Key(
            check_tables,
            None,
            "list of tables",
            "below",
            "other settings of it, or after its kind, under some attacks or with some partitions",
            "none",
            '[{ attack = "sign-flip", step = { power = [0.2, 0.5] } }]',
        ),
    },
    "algorithms.NAME.where": {
        "attack": Key(
            check_names,
            None,
            "string or list",
            "as the file has it, or its name",
            "the attacks under which these settings hold",
            "all",
            '"sign-flip"',
        ),
        "partition": Key(
            check_partitions,
            None,
            "string or list",
            "those of the file",
            "the partitions with which they hold",
            "all",
            '"by-label"',
        ),
    },
    "heat_map": {
        "n_byzantine": Key(
            check_counts,
            REQUIRED,
            "list of integers",
            "0 .. n_workers",
            "numbers of Byzantine workers, a map each",
            example="[4, 8]",
        ),
        "partition": Key(
            check_listed_partitions,
            ["iid"],
            "list of strings",
            "as above",
            "partitions, a map each",
        ),
    },
    "published.NAME": {
        "final": Key(
            check_share,
            REQUIRED,
            "number",
            "0 .. 1",
            "published final accuracy of algorithm NAME",
            "required, but in a heat map",
            "0.9",
        ),
        "at": Key(
            check_counts,
            REQUIRED,
            "list of integers",
            ">= 0, ascending",
            "some iterations",
            "required, but in a heat map",
            "[500, 1000]",
        ),
        "accuracy": Key(
            check_numbers,
            REQUIRED,
            "list of numbers",
            "one per iteration",
            "published there",
            "required, but in a heat map",
            "[0.8, 0.9]",
        ),
        "finals": Key(
            check_finals,
            None,
            "list of numbers",
            "0 .. 1, one per attack; nan: not published",
            "in a heat map, and nothing else then: its published final accuracies",
            "none",
            "[0.9, nan]",
        ),
        "why": Key(check_string, "", "string", "any", "why ours differs; shown if finals differ by over 0.02"),
    },
    "quadratic": {
        "a": Key(
            check_numbers, REQUIRED, "list", _ONE_PER_WORKER, "curvature of a (x - b)^2 / 2", example="[0.5, 0.5]"
        ),
        "b": Key(check_numbers, REQUIRED, "list", _ONE_PER_WORKER, "minimizer of it", example="[1.0, 1.0]"),
        "x": Key(check_numbers, REQUIRED, "list", _ONE_PER_WORKER, "where the worker starts", example="[1.0, 1.0]"),
        "x0": Key(check_real, 0.0, "number", "any", "where the master starts"),
        "first_k": Key(check_natural, 1, "integer", ">= 0", "number of the first iteration in steps and attacks"),
    },
    "tuning": {
        "budget": Key(
            check_count,
            REQUIRED,
            "integer",
            ">= 1",
            "trials per searched setting: ADMM has 3, RSA 2, SGD 1",
            example="12",
        ),
        "seed": Key(check_natural, 0, "integer", ">= 0", "seed of the search"),
        "iterations": Key(check_count, None, "integer", ">= 1", "length of a trial", "that of the panel", "500"),
        "step": Key(
            check_range,
            None,
            "two numbers",
            "0 < low < high",
            "range of c in the step c / sqrt k (SGD, RSA)",
            "from the scale of the data",
            "[0.1, 10.0]",
        ),
        "lam": Key(
            check_range,
            None,
            "two numbers",
            "0 < low < high",
            "range of lam (ADMM, RSA)",
            "from the scale of the data",
            "[0.001, 0.1]",
        ),
        "beta": Key(
            check_range,
            None,
            "two numbers",
            "0 < low < high",
            "range of beta (ADMM)",
            "from the scale of the data",
            "[0.05, 5.0]",
        ),
        "slope": Key(
            check_range,
            None,
            "two numbers",
            "0 < low < high",
            "range of c1 in both inv_sqrt steps (ADMM)",
            "from the scale of the data",
            "[0.03, 3.0]",
        ),
    },
}


def markdown(section: str) -> str:
    """The keys of one section as a table of ``docs/settings.md``.

    Examples
    --------
    >>> from byzadmm.figures.keys import markdown
    >>> print(markdown("heat_map").splitlines()[0])
    | key | type | meaning | permitted values | default |
    """
    lines = ["| key | type | meaning | permitted values | default |", "|---|---|---|---|---|"]
    for name, key in SECTIONS[section].items():
        default = f"`{key.toml}`" if key.otherwise == key.toml else key.otherwise
        lines.append(f"| `{name}` | {key.type} | {key.meaning} | {key.permitted} | {default} |")
    return "\n".join(lines)
