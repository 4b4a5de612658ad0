"""Active membership inference on gradients: does a client's data contain this record?

A dishonest server plants the parameters of the model (Nguyen, Lai, Tran, Phan and Thai, "Active membership inference
attack under local differential privacy in federated learning", AISTATS 2023). One hidden unit is active on records that
point to the target. The gradient of its weights, over that of its bias, is the mean of the active records, as released.
The client releases its records once, computes the gradient on the releases, and sends it as it is: Algorithm 1 of the
BitRand paper. How well the server tells the target from the opposite record bounds epsilon from below.

    python examples/papers/membership_attack.py                    # a table; about half an hour
    python examples/papers/membership_attack.py --trials 20000     # certifies up to 6.5
"""

import argparse
import warnings

import numpy as np

from skldp import BitRandTransformer, PrivUnitTransformer
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.papers import OMETransformer
from skldp.study import audit_epsilon
from skldp.study._federated_parts import ScoreModel

__all__ = ["MECHANISMS", "PlantedUnit", "attack"]

MECHANISMS = {
    "BitRand": BitRandTransformer,
    "OME, alpha 100": lambda epsilon: OMETransformer(epsilon, alpha=100),
    "BitRand, exact": lambda epsilon: BitRandTransformer(epsilon, calibration="exact"),
    "PrivUnit": PrivUnitTransformer,
}


class PlantedUnit:
    """Gradients of clients that hold one record of interest each, and what a dishonest server reads from them.

    Parameters
    ----------
    fitted : transformer
        Releases the records of the clients.
    target : ndarray of shape (n_features,)
        Values of 1 and -1.
    others : ndarray of shape (n_others, n_features)
        The client's other records, released anew for each client.
    threshold : float
        The planted unit is active where the mean of ``target * released`` is above it.
    """

    def __init__(self, fitted, target, others, threshold=0.0):
        self.fitted, self.target, self.others = fitted, target, others
        r = len(target)
        self.model = ScoreModel("softmax", r + 1, 2, (1,))
        # The scores hardly depend on the unit, so that every record has a residual of about one half.
        self.theta = np.concatenate([target / r, [-threshold], [1e-9, 0.0], [0.0, 0.0]])

    def gradients(self, rows):
        """Release the clients' records and return each client's gradient, of shape (n_clients, n_parameters)."""
        released = self.fitted.transform(np.concatenate([rows, np.tile(self.others, (len(rows), 1))]))
        own, others = released[: len(rows), None], released[len(rows) :].reshape(len(rows), *self.others.shape)
        records = np.concatenate([own, others], axis=1)
        records = np.concatenate([records, np.ones((*records.shape[:2], 1))], axis=2)
        n = records.shape[1]
        labels = np.broadcast_to([0.0, 1.0], (*records.shape[:2], 2))
        return self.model.gradient(self.theta, records, labels, np.full(records.shape[:2], 1 / n))

    def __call__(self, rows):
        """Return the server's score of each client: how many signs of the active records agree with the target's.

        Of vectors of one length, which PrivUnit releases, it is the cosine. Without an active record it is -2.
        """
        of_unit = self.gradients(rows)[:, : len(self.target) + 1]
        active = of_unit[:, -1] != 0
        read = of_unit[active, :-1] / of_unit[active, -1:]
        scores = np.full(len(rows), -2.0)
        if isinstance(self.fitted, PrivUnitTransformer):
            scores[active] = read @ self.target / np.linalg.norm(read, axis=1) / len(self.target) ** 0.5
        else:
            scores[active] = np.sign(read) @ self.target / len(self.target)
        return scores


def attack(name, epsilon, *, n_features=64, n_records=1, n_trials=20_000, confidence=0.999, seed=0):
    """Return the audit of one mechanism, with its exact epsilon as the claim.

    Parameters
    ----------
    name : str
        A name of ``MECHANISMS``.
    epsilon : float
        Stated.
    n_features : int
    n_records : int
        Of a client: the one in question, and others that are uniform in the box.
    n_trials, confidence
        As for :func:`skldp.study.audit_epsilon`.
    seed : int
        Of the target, the other records and the coins, not of the releases.

    Returns
    -------
    AuditResult
    """
    rng = np.random.default_rng(seed)
    target = rng.choice([-1.0, 1.0], n_features)
    others = rng.uniform(-1, 1, (n_records - 1, n_features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        fitted = MECHANISMS[name](epsilon).fit(target[None])
    # The server knows the law: few releases of other records are to activate the unit. A record alone always does.
    guesses = fitted.transform(rng.uniform(-1, 1, (100_000, n_features))) @ target / n_features
    threshold = np.quantile(guesses, 0.999) if n_records > 1 else -1e6
    release = PlantedUnit(fitted, target, others, threshold)
    settings = {"n_trials": n_trials, "confidence": confidence, "rows_per_call": 5_000, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = audit_epsilon(release, target, -target, **settings)
    return result.against(fitted.privacy_guarantee_.epsilon)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(map(float, range(1, 11))))
    parser.add_argument("--records", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--trials", type=int, default=800_000)
    options = parser.parse_args()
    for n_records in options.records:
        print(f"{n_records} records a client: certified lower bound (exact epsilon)")
        for name in MECHANISMS:
            cells = []
            for epsilon in options.epsilons:
                found = attack(name, epsilon, n_features=options.features, n_records=n_records, n_trials=options.trials)
                cells.append(f"{found.epsilon_lower:.2f} ({found.claimed:.4g})")
            print(f"  {name:<16}", *cells, flush=True)
