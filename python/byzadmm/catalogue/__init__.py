"""The catalogue: every name that a person can type, and what goes with it.

For an algorithm that is its class, its label, the settings that suit a data set, what a search varies, and its color
and line in every picture; for an attack, a rule, a step size or a partition, its function or class and its settings.
The command line, settings files, searches, pictures and the ``for_dataset`` of the algorithms read it here.
"""

from byzadmm.catalogue.entries import (
    LOSSES,
    PAPER,
    PARTITIONS,
    REQUIRED,
    STEPS,
    AlgorithmEntry,
    Entry,
    Style,
    algorithms,
    attacks,
    links,
    options,
    rules,
)
from byzadmm.catalogue.looks import (
    LABELS,
    STYLES,
    attack_name,
    attack_title,
    describe_attack,
    distinct_attacks,
    label_of,
    name_of,
    partition_label,
    styles,
)
from byzadmm.catalogue.own import located, own_entry, split_own
from byzadmm.catalogue.presets import PRESETS, Preset, dataset_name, load_dataset, preset_for
from byzadmm.catalogue.text import (
    hyphenated,
    make_algorithm,
    make_attack,
    make_parts,
    make_rule,
    make_step,
    parse,
    takes_f,
)

__all__ = [
    "LABELS",
    "LOSSES",
    "PAPER",
    "PARTITIONS",
    "PRESETS",
    "REQUIRED",
    "STEPS",
    "STYLES",
    "AlgorithmEntry",
    "Entry",
    "Preset",
    "Style",
    "algorithms",
    "attack_name",
    "attack_title",
    "attacks",
    "dataset_name",
    "describe_attack",
    "distinct_attacks",
    "hyphenated",
    "label_of",
    "links",
    "load_dataset",
    "located",
    "make_algorithm",
    "make_attack",
    "make_parts",
    "make_rule",
    "make_step",
    "name_of",
    "options",
    "own_entry",
    "parse",
    "partition_label",
    "preset_for",
    "rules",
    "split_own",
    "styles",
    "takes_f",
]
