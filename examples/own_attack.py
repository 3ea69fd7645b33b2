"""An attack of your own against five algorithms over five seeds: table, curves with bands, one page.

    python examples/own_attack.py
"""

import argparse

import byzadmm


def lure(messages, *, byzantine, **_):
    """All attackers send the mean of the regular messages, turned around and three times as long."""
    regular = [worker for worker in range(len(messages)) if worker not in byzantine]
    return [-3 * messages[regular].mean(axis=0)] * len(byzantine)


def main(quick=False):
    study = byzadmm.compare(
        "digits",
        algorithms=["ideal", "admm", "rsa", "nnm+trimmed-mean", "sgd"],
        attacks=[None, "sign-flip", lure],
        n_byzantine=8,
        seeds=2 if quick else 5,
        iterations=200 if quick else 1000,
        progress=True,
    )
    print(study.table())
    study.plot("own_attack.png")
    study.report("own_attack.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: fewer iterations and seeds")
    main(**vars(parser.parse_args()))
