"""The service against its own description: schemathesis makes requests up, right and wrong ones."""

from pathlib import Path

import pytest
from service_support import TOKEN, item_id, served

from pslrec.serving import Service, ServiceOptions

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis comes with pslrec[dev]")
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from hypothesis.strategies import booleans  # noqa: E402
from schemathesis.specs.openapi.checks import ignored_auth  # noqa: E402

pytestmark = pytest.mark.slow
EXAMPLES = 100
ADDRESSES = (
    "/recommend",
    "/recommend-for-history",
    "/similar/{item}",
    "/search",
    "/random-user",
    "/health",
    "/version",
    "/reload",
)


@pytest.fixture(scope="module")
def description(finished_run: Path):
    # A limit on the product of two values can not be described.
    service = Service(finished_run, options=ServiceOptions(token=TOKEN, largest_answer=10**6))
    with served(service) as (port, _):
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")


def use_known_ids(case) -> None:
    """Made-up ids are unknown nearly always; this lets requests come to an answer."""
    if "item" in case.path_parameters:
        case.path_parameters["item"] = "10"
    known_ids = {"users": "user/3", "history": item_id(0), "items": 10, "exclude": 20}
    for field, known in known_ids.items():
        if isinstance(case.body, dict) and case.body.get(field):
            case.body[field] = [known for _ in case.body[field]]


def leave_out_conditions(case) -> None:
    """Neither a grammar nor the columns of a table can be described; other tests see to them."""
    for field in ("where", "at_most"):
        for part in (case.body, case.query):
            if isinstance(part, dict):
                part.pop(field, None)


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_is_as_described(description, address, mode):
    operation = next(
        found.ok() for found in description.get_all_operations() if found.ok().path == address
    )
    if mode == "negative" and address in ("/random-user", "/health", "/version", "/reload"):
        pytest.skip("takes nothing that could be wrong")

    # In order, so that a failure comes again.
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)),
        is_known=booleans(),
    )
    def ask(case, is_known: bool) -> None:
        if mode == "positive":
            leave_out_conditions(case)
            if is_known:
                use_known_ids(case)
        # Sending the token along hides from that check that requests without one are refused; other tests see to it.
        case.call_and_validate(
            headers={"authorization": f"Bearer {TOKEN}"}, timeout=20, excluded_checks=[ignored_auth]
        )

    ask()
