"""No master: 20 nodes in two cliques, four of them Byzantine, hear their neighbors alone; five algorithms, two attacks.

    python examples/decentralized.py
"""

import argparse

import byzadmm
from byzadmm import graphs

GRAPH, BYZANTINE = graphs.two_castle(10), [0, 1, 10, 11]


def main(quick=False):
    study = byzadmm.compare(
        "digits",
        graph=GRAPH,
        byzantine=BYZANTINE,
        algorithms=["ideal", "dadmm", "drsa", "gossip", "trim-neighbors", "ios"],
        attacks=[None, "sign-flip", "dissensus"],
        seeds=1 if quick else 3,
        iterations=100 if quick else 500,
        progress=True,
    )
    print(study.table())
    study.plot("decentralized.png")
    GRAPH.plot("graph.png", byzantine=BYZANTINE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: a fifth of the rounds, one seed")
    main(**vars(parser.parse_args()))
