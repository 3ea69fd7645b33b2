"""A robust server in Flower: ten clients, three of them Byzantine, under FedAvg and under the trimmed mean.

    python examples/flower_server.py

runs server and clients in this process. The file is a Flower app too: docs/flower.md runs it over a network.
"""

import argparse
import logging

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from byzadmm import datasets, kernels, partition
from byzadmm.flower import RobustStrategy

CLIENTS, BYZANTINE = 10, 3
data = datasets.load("digits")
parts = partition.iid(data.train_y, CLIENTS, seed=0)
client = ClientApp()
server = ServerApp()


@client.train()
def train(message, context):
    """Ten steps of softmax regression on the client's own samples; client 0 sends NaN, 1 and 2 a forged model."""
    number = context.node_config["partition-id"]
    W = message.content["arrays"].to_numpy_ndarrays()[0]
    X, y = data.train_x[parts[number]], data.train_y[parts[number]]
    for _ in range(10):
        W = W - 0.5 * kernels.softmax_gradient(W[None], X, y, scale=data.scale)[0]
    if number < BYZANTINE:
        W = W * np.float32("nan") if number == 0 else -10 * W
    reply = {"arrays": ArrayRecord([W]), "metrics": MetricRecord({"num-examples": len(y)})}
    return Message(RecordDict(reply), reply_to=message)


@server.main()
def serve(grid, context):
    """Rounds of training; the accuracy of the last model."""
    settings = context.run_config
    nodes = {"min_train_nodes": settings["clients"], "min_available_nodes": settings["clients"]}
    if settings["rule"] == "fedavg":
        strategy = FedAvg(fraction_evaluate=0.0, **nodes)
    else:
        strategy = RobustStrategy(settings["rule"], f=settings["f"], fraction_evaluate=0.0, **nodes)
    start = ArrayRecord([np.zeros((10, 65), np.float32)])
    result = strategy.start(grid=grid, initial_arrays=start, num_rounds=settings["rounds"])
    W = result.arrays.to_numpy_ndarrays()[0]
    print(
        f"{settings['rule']:13} accuracy {kernels.softmax_accuracy(W, data.test_x, data.test_y, scale=data.scale):.2f}"
    )


class InThisProcess:
    """What a strategy asks of Flower's grid, with the clients in this process."""

    def get_node_ids(self):
        return range(CLIENTS)

    def send_and_receive(self, messages, timeout=None):
        for message in messages:
            number = message.metadata.dst_node_id
            yield client(message, Context(0, number, {"partition-id": number}, RecordDict(), {}))


def main(quick=False):
    logging.getLogger("flwr").setLevel(logging.ERROR)
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 0  # set by Flower where it starts the process
    for rule in ("fedavg", "trimmed-mean"):
        settings = {"rule": rule, "f": BYZANTINE, "clients": CLIENTS, "rounds": 3 if quick else 20}
        server(InThisProcess(), Context(0, 0, {}, RecordDict(), settings))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    main(**vars(parser.parse_args()))
