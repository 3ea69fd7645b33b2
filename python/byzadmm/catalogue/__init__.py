"""The catalogue: every name that a person can type, and what goes with it.

For an algorithm that is its class, its label, the settings that suit a data set, what a search varies, and its color
and line in every picture; for an attack, a rule, a delay, a step size or a partition, its function or class and its
settings.
The command line, settings files, searches, pictures and the ``for_dataset`` of the algorithms read it here.
"""

from byzadmm.catalogue.by_name import make_algorithm
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
    codes,
    delays,
    filters,
    graphs,
    links,
    options,
    rules,
)
from byzadmm.catalogue.graph_text import make_decentralized, make_graph, make_neighborhood_rule
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
from byzadmm.catalogue.networks import ON_GRAPHS, decentralized, known_as, neighborhood_rules
from byzadmm.catalogue.own import located, own_entry, split_own
from byzadmm.catalogue.presets import PRESETS, Preset, dataset_name, load_dataset, preset_for
from byzadmm.catalogue.text import (
    hyphenated,
    make_attack,
    make_coding,
    make_delays,
    make_filter,
    make_parts,
    make_rule,
    make_step,
    parse,
    takes_f,
)

__all__ = [
    "LABELS",
    "LOSSES",
    "ON_GRAPHS",
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
    "codes",
    "dataset_name",
    "decentralized",
    "delays",
    "describe_attack",
    "distinct_attacks",
    "filters",
    "graphs",
    "hyphenated",
    "known_as",
    "label_of",
    "links",
    "load_dataset",
    "located",
    "make_algorithm",
    "make_attack",
    "make_coding",
    "make_decentralized",
    "make_delays",
    "make_filter",
    "make_graph",
    "make_neighborhood_rule",
    "make_parts",
    "make_rule",
    "make_step",
    "name_of",
    "neighborhood_rules",
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
