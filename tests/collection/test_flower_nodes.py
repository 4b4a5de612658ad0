"""A real server of Flower's and two of its nodes over TLS on this machine, one of which is killed and comes back.

With ``SKLDP_FLOWER=required`` in the environment, as continuous integration sets it, a Flower that is missing fails.
Seconds that a node may take are in ``SKLDP_FLOWER_TIMEOUT``, for a machine that does other work as well.
"""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from skldp.client import DeviceLedger, Policy, VectorField
from skldp.learning import Report
from skldp.learning._discriminant import DiscriminantProtocol

REQUIRED = os.environ.get("SKLDP_FLOWER") == "required"
TIMEOUT = float(os.environ.get("SKLDP_FLOWER_TIMEOUT", "25"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not REQUIRED and not find_spec("flwr"),
        reason="Flower is not installed: nox -s flower runs this with it.",
    ),
]

N, EPSILON = 200, 8.0
APP = '''
import os
import signal
from pathlib import Path

import numpy as np

from skldp.flower import flower_client_app, flower_server_app
from skldp.client import DeviceLedger
from skldp.learning._discriminant import DiscriminantProtocol

FOLDER = Path({folder!r})


class Device(DeviceLedger):
    """Whose program is killed between the charge and the answer, once, when it is told."""

    def charge(self, policy, epsilon):
        super().charge(policy, epsilon)
        try:
            (FOLDER / "kill").unlink()
        except FileNotFoundError:
            return
        (FOLDER / "killed").write_text(self.path)
        os.kill(os.getpid(), signal.SIGKILL)


def people(context):
    part = context.node_config["part"]
    X, y = np.load(FOLDER / "X.npy"), np.load(FOLDER / "y.npy")
    for i in range(part, {n}, 2):
        # Only the second node's.
        kind = Device if part else DeviceLedger
        yield X[i], y[i], kind(FOLDER / f"{{i}}.sqlite", lifetime_epsilon={epsilon})


class Recorded(DiscriminantProtocol):
    def next(self, reports):
        with open(FOLDER / "reports.txt", "a", encoding="utf-8") as file:
            file.write(" ".join(report.to_json().replace(" ", "") for report in reports) + "\\n")
        return super().next(reports)


def protocol(context):
    return Recorded(2, {n}, 2, epsilon={epsilon}, low=[-1, -1], high=[1, 1])


client = flower_client_app(people, purpose="a test")
server = flower_server_app(protocol, FOLDER / "state.json", least_nodes=2, timeout={timeout})
'''
UPDATES = """
import json
import time
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from skldp.client import DeviceLedger, Policy
from skldp.flower import flower_mod

FOLDER = Path({folder!r})


def ledger(context):
    return DeviceLedger(FOLDER / f"{{context.node_config['part']}}.sqlite", lifetime_epsilon=100.0)


client = ClientApp(mods=[flower_mod(Policy.load(FOLDER / "policy.json"), ledger)])


def answer(message, context):
    first, second = message.content["model"].to_numpy_ndarrays()
    part = int(context.node_config["part"])
    model = ArrayRecord([first + np.float32(0.25) * (1 - 2 * part), second])
    return Message(RecordDict({{"model": model, "metrics": MetricRecord({{"loss": 0.123}})}}), reply_to=message)


client.train()(answer)
client.evaluate()(answer)
server = ServerApp()


@server.main()
def main(grid, context):
    while len(nodes := list(grid.get_node_ids())) < 2:
        time.sleep(0.5)
    found = []
    for kind in ("train", "evaluate"):
        model = ArrayRecord([np.zeros((3, 2), np.float32), np.ones(2)])
        messages = [Message(RecordDict({{"model": model}}), dst_node_id=n, message_type=kind) for n in nodes]
        for reply in grid.send_and_receive(messages, timeout={timeout}):
            records = {{name: dict(record) for name, record in reply.content.items()}}
            found.append([kind, {{name: {{k: v.hex() for k, v in one.items()}} for name, one in records.items()}}])
    (FOLDER / "replies.part").write_text(json.dumps(found))
    (FOLDER / "replies.part").rename(FOLDER / "replies.json")
"""
SETTINGS = """
[project]
name = "rounds"
version = "1.0.0"
description = "a test"
license = { file = "LICENSE" }
dependencies = ["flwr>=1.41"]

[tool.flwr.app]
publisher = "test"
fab-format-version = 1
flwr-version-target = "1.41.0"

[tool.flwr.app.components]
serverapp = "rounds.app:server"
clientapp = "rounds.app:client"
"""


def write_app(folder, source):
    app = folder / "app"
    (app / "rounds").mkdir(parents=True)
    (app / "pyproject.toml").write_text(SETTINGS)
    (app / "LICENSE").write_text("None.")
    (app / "rounds/__init__.py").write_text("")
    (app / "rounds/app.py").write_text(source)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def certificates(folder):
    """A root of its own, and a certificate by it for the loopback address."""
    root, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    of_root = x509.SubjectKeyIdentifier.from_public_key(root.public_key())
    usages = dict.fromkeys(["content_commitment", "key_encipherment", "data_encipherment", "key_agreement"], False)
    usages |= dict.fromkeys(["encipher_only", "decipher_only"], False)
    for file, key, signs, others in (
        ("root", root, True, [of_root]),
        ("own", own, False, [x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])]),
    ):
        name, issuer = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one)]) for one in (file, "root"))
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        usage = x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **usages)
        made = made.add_extension(usage, critical=True)
        for other in (*others, x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(of_root)):
            made = made.add_extension(other, critical=False)
        (folder / f"{file}.pem").write_bytes(made.sign(root, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "own.key").write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


class Flower:
    """Its programs, each with those that it starts in a group of its own; what passes between them is encrypted."""

    def __init__(self, folder):
        self.folder, self.port, self.running = folder, free_port(), {}
        certificates(folder)
        (folder / "home").mkdir()
        (folder / "home/config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\n'
            f'root-certificates = "{folder}/root.pem"\n'
        )
        root = str(Path(__file__).parents[2])
        self.environment = os.environ | {
            "FLWR_HOME": str(folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": root,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def start(self, name, *command):
        with open(self.folder / f"{name}.log", "a", encoding="utf-8") as log:
            self.running[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def link(self):
        self.start(
            *("link", "flower-superlink", "--disable-runtime-dependency-installation"),
            *("--host", "127.0.0.1", "--port", str(self.port), "--ssl-ca-certfile", str(self.folder / "root.pem")),
            *("--ssl-certfile", str(self.folder / "own.pem"), "--ssl-keyfile", str(self.folder / "own.key")),
        )
        self.until(lambda: listens(self.port))

    def node(self, part):
        self.start(
            f"node{part}",
            *("flower-supernode", "--root-certificates", str(self.folder / "root.pem")),
            *(
                "--superlink",
                f"127.0.0.1:{self.port}",
                "--host",
                "127.0.0.1",
                "--port",
                str(free_port()),
                "--node-config",
                f"part={part}",
            ),
        )

    def kill(self, name):
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self):
        return "\n".join(f"{path.name}\n{path.read_text()[-3_000:]}" for path in self.folder.glob("*.log"))

    def until(self, condition):
        for _ in range(int(8 * TIMEOUT / 0.2)):
            if condition():
                return
            time.sleep(0.2)
        raise AssertionError(self.log())


@pytest.fixture
def flower(tmp_path):
    programs = Flower(tmp_path)
    yield programs
    for name in list(programs.running):
        programs.kill(name)


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_rounds_over_flower_with_a_node_that_is_killed_and_comes_back(flower, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=N)
    X = np.clip(rng.normal(np.where(y, 0.5, -0.5)[:, None], 0.1, (N, 2)), -1, 1)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    settings = {"folder": str(tmp_path), "n": N, "epsilon": EPSILON, "timeout": TIMEOUT}
    write_app(tmp_path, APP.format(**settings))

    flower.link()
    flower.node(0)
    flower.node(1)
    # The first of the second node's people who is asked does not live to answer.
    (tmp_path / "kill").touch()
    flower.start("run", "flwr", "run", str(tmp_path / "app"), "here")
    flower.until((tmp_path / "killed").exists)
    flower.kill("node1")
    flower.node(1)
    state = tmp_path / "state.json"
    settings = {"n_features": 2, "n_people": N, "n_classes": 2, "epsilon": EPSILON, "low": [-1] * 2, "high": [1] * 2}

    def done():
        return state.exists() and DiscriminantProtocol.from_json(state.read_text()).task is None

    flower.until(done)

    # Nobody took part twice, and who was killed after the charge never again.
    key = hashlib.sha256(b"skldp: rounds\0a test").hexdigest()
    ledgers = [DeviceLedger(tmp_path / f"{i}.sqlite", lifetime_epsilon=EPSILON) for i in range(N)]
    answered = [ledger.reports().get(key, 0) for ledger in ledgers]
    assert set(answered) <= {0, 1}
    lost = int(Path((tmp_path / "killed").read_text()).stem)
    assert answered[lost] == 1
    assert max(ledger.spent for ledger in ledgers) <= EPSILON
    cohorts = [
        list(map(Report.from_json, line.split())) for line in (tmp_path / "reports.txt").read_text().splitlines()
    ]
    counted = sum(report.n_people for cohort in cohorts for report in cohort)
    assert N / 2 < counted < sum(answered)
    # Both nodes' were counted, the second one's after it had come back.
    assert any(len(cohort) == 2 for cohort in cohorts)
    # The same reports in one process: the same state, to the bit.
    again = DiscriminantProtocol(**settings)
    for cohort in cohorts:
        again.next(cohort)
    assert json.loads(again.to_json()) == json.loads(state.read_text())


def test_updates_of_any_model_pass_as_reports_alone(flower, tmp_path):
    """Through Flower's own messages: two nodes train a model of two arrays, and a server asks for metrics as well."""
    policy = Policy("train a model", (VectorField.privunit("update", 8, 20.0, bound=1.0),))
    policy.save(tmp_path / "policy.json")
    write_app(tmp_path, UPDATES.format(folder=str(tmp_path), timeout=TIMEOUT))
    flower.link()
    flower.node(0)
    flower.node(1)
    flower.start("run", "flwr", "run", str(tmp_path / "app"), "here")
    flower.until((tmp_path / "replies.json").exists)
    replies = json.loads((tmp_path / "replies.json").read_text())
    assert [(kind, list(one)) for kind, one in replies] == [("train", ["skldp"])] * 2 + [("evaluate", [])] * 2
    law = policy.fields[0].law
    wanted = np.append(np.full(6, 0.25), [0.0, 0.0])
    found = []
    for _, one in replies[:2]:
        assert list(one["skldp"]) == ["report"]
        answer = policy.read(bytes.fromhex(one["skldp"]["report"])).answers["update"]
        found.append(float(np.array(law.values(answer)) @ wanted / (wanted @ wanted)))
    # At an epsilon of 20 a release is nearly the vector, whose direction is opposite on the second node.
    low, high = sorted(found)
    assert low < -0.4
    assert high > 0.4
    spent = [DeviceLedger(tmp_path / f"{part}.sqlite", lifetime_epsilon=100.0).spent for part in (0, 1)]
    assert spent == pytest.approx([20.0, 20.0])
