"""Hibernate of Debian's package: keys of serial columns by RETURNING, and keys that it asks a sequence for before the INSERT."""

import shutil

import pytest
from application import HERE, LARGE, Application, report

from loopback import port_of

JARS = [
    "hibernate-core", "hibernate-commons-annotations", "geronimo-jpa_2.0_spec", "geronimo-jta-1.2-spec", "commons-collections3",
    "dom4j", "antlr", "slf4j-api", "slf4j-nop", "javassist", "postgresql",
]  # fmt: skip
PATH = [f"/usr/share/java/{jar}.jar" for jar in JARS]
pytestmark = pytest.mark.skipif(
    not shutil.which("javac") or not all(map(shutil.os.path.exists, PATH)), reason="Java, Hibernate or its driver is not there"
)


class Hibernate:
    def __init__(self, directory):
        self.directory = directory

    def compile(self, application):
        application.run("javac", "-nowarn", "-cp", ":".join(PATH), "-d", self.directory, HERE / "Hibernate.java")

    def __call__(self, application, *command, **environment):
        with port_of(application.server) as port:
            url = f"jdbc:postgresql://127.0.0.1:{port}/{application.name}?user=postgres"
            # It compiles classes at runtime, for which it needs what later versions of Java keep from it.
            java = ["java", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp", ":".join([str(self.directory), *PATH])]
            return application.run(*java, "Hibernate", *command, environment={"JDBC_URL": url} | environment).splitlines()


@pytest.fixture
def hibernate(tmp_path):
    return Hibernate(tmp_path)


@pytest.mark.parametrize("path", [False, True], ids=["without the path", "with the path"])
def test_hibernate_notices_nothing(server, hibernate, path):
    native = Application(server, "hibernate")
    hibernate.compile(native)
    sequences = {"SEQUENCES": "yes" if path else "no"}
    hibernate(native, "create", **sequences)
    adopted = native.adopted("twitter", path=path)
    assert sorted(adopted.obstacles) == ([] if path else ["invoice_numbers"])
    before, after = (hibernate(one, "walk", **sequences) for one in (native, adopted))
    assert before == after and {"distinct true", "found 30", "renamed 30"} <= set(after), (before, after)
    assert adopted.dangling() == 0 and adopted.tables_with_ids() == {"customers", "orders", "items"}
    assert native.tables_with_ids() == set()
    if path:
        assert adopted.sql(f"SELECT count(*) FROM invoices WHERE id > {LARGE}") == [(58,)]
    report("Hibernate", answers=len(after), path=path)
