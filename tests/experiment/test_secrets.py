"""
Secrets in experiment files: read once, concealed at once, and never where everybody looks.
"""

import pytest

from harness.base.errors import SpecError
from harness.base.hadoop.secrets import DIGEST, Secrets
from harness.core.experiment.file import KnownNames, concealed_text, read_experiment

HEAD = "schema: 1\nname: x\nquestion: why?\nworkloads: [{name: wordcount, input: 1 MiB}]\n"
GIVEN = {("env", "TOKEN"): "value-of-env", ("file", "/a b"): 'va"lue\nof-file'}
# How YAML can write it: a value, and the lines that have it.
STYLES = [
    "configuration: {fs.s3a.secret.key: CANARY-1}",
    "configuration:\n  fs.s3a.secret.key: CANARY-1  # CANARY-1\n  a: b",
    'configuration:\n  fs.s3a.secret.key: "CANARY-1\\n"\n  a: b',
    "configuration:\n  fs.s3a.secret.key: 'CANARY-''1'",
    "configuration:\n  fs.s3a.secret.key: |\n    CANARY-1\n    more\n  a: b",
    "configuration:\n  fs.s3a.secret.key: >-\n    CANARY-1\n    more\n\n  a: b",
    "configuration:\n  fs.s3a.secret.key: [CANARY-1, 'CANARY-2']",
    "cluster:\n  site:\n    oauth.token: CANARY-1\nconfiguration:\n  a: -Dx=CANARY-1",
    "configuration:\n  a: ${env:TOKEN}\n  b: x${file:/a b}y",
    "cluster: {site: {hadoop.security.sensitive-config-keys: pin$, my.pin: CANARY-1}}",
]


def user():
    """
    Secrets of a user who has a variable and a file.
    """
    secrets = Secrets()
    secrets.find_key = lambda: bytes(32)

    def read(kind, name):
        if (kind, name) not in GIVEN:
            raise SpecError(f"{name} is not there", fix="make it")
        return GIVEN[kind, name]

    secrets.read = read
    return secrets


def known(secrets):
    """
    What an experiment may name.
    """
    return KnownNames(workloads=["wordcount"], models=[], providers=["local"], secrets=secrets)


def read(text, *overrides, secrets=None):
    """
    The experiment of a user.
    """
    return read_experiment(HEAD + text, "f.yaml", overrides, known=known(secrets or user()))


def properties(experiment):
    """
    All values of its properties.
    """
    both = {**experiment.cluster.site, **experiment.configuration}
    return {name: list(values) for name, values in both.items()}


class TestConcealed:
    @pytest.mark.parametrize("text", STYLES)
    def test_a_stored_copy_says_the_same_without_the_value(self, text):
        """
        Read again, by somebody who knows nothing, it is the same experiment.
        """
        stored = concealed_text(HEAD + text, "f.yaml", user())

        again = read_experiment(stored, "f.yaml", known=known(Secrets()))
        assert again == read(text)
        assert [word for word in ("CANARY", "value-of", "of-file", "TOKEN") if word in stored] == []
        assert DIGEST.search(str(properties(again)))

    def test_values_are_known_again(self):
        """
        One that holds another is secret as a whole.
        """
        secrets = user()
        experiment = read(
            "configuration: {my.password: CANARY-1, a: -Dx=CANARY-1, b: CANARY-1, c: CANARY}",
            secrets=secrets,
        )

        values = {n: v for n, (v,) in properties(experiment).items()}
        assert values["my.password"] == values["b"]
        assert secrets.reveal(values["a"]) == "-Dx=CANARY-1"
        assert values["c"] == "CANARY"

    def test_overrides_too(self):
        """
        Whose errors show none either.
        """
        secrets = user()
        given = read("", "configuration.a.password=[CANARY-1, abc]", secrets=secrets)

        assert [secrets.reveal(v) for v in properties(given)["a.password"]] == ["CANARY-1", "abc"]

    def test_an_experiment_without_stays_as_it_is(self):
        """
        Byte for byte, and so do the ids of its trials.
        """
        text = (
            "cluster: {site: {dfs.blocksize: 2m}}\nconfiguration: {a: ['${x}', '${env.HOME}', 1]}"
        )

        assert concealed_text(HEAD + text, "f.yaml", user()) == HEAD + text
        assert read(text) == read_experiment(HEAD + text, "f.yaml")


BAD = {
    "a job's name": (
        "configuration: {a.password: CANARY-1, mapreduce.job.name: nightly CANARY-1}",
        "configuration.mapreduce.job.name holds the value of a secret",
        "f.yaml:5:59",
    ),
    "a job's name from elsewhere": (
        "configuration: {mapreduce.job.name: ['x', '${env:TOKEN}']}",
        "configuration.mapreduce.job.name.1 holds the value of a secret",
        "f.yaml:5:43",
    ),
    "a workload's argument": (
        "cluster: {site: {a.password: wordcount}}",
        "workloads.0.name holds the value of a secret",
        "f.yaml:4:20",
    ),
    "no such variable": (
        "configuration: {a: '${env:NONE}'}",
        "configuration.a: NONE is not there",
        "f.yaml:5:20",
    ),
    "no list": (
        "cluster: {site: {hadoop.security.sensitive-config-keys: '*x'}}",
        "no regular expression",
        "f.yaml:5:57",
    ),
}


class TestRefused:
    @pytest.mark.parametrize(("text", "what", "where"), BAD.values(), ids=BAD)
    def test_where_everybody_would_see_it(self, text, what, where):
        """
        At its place, without the value.
        """
        with pytest.raises(SpecError) as refused:
            read(text)

        assert what in refused.value.what
        assert refused.value.where == where
        assert "CANARY" not in str(refused.value)
        assert refused.value.fix
