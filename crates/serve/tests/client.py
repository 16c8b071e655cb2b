"""The client that openapi-python-client makes of the description, at work on a running service."""

import sys
import time

from cantus_client import Client
from cantus_client.api.compute import compute
from cantus_client.api.jobs import get_job, get_result, list_jobs, submit_job
from cantus_client.models import (
    Answer, Array, DTypeName, ExpressionKind, ExpressionWork, ExpressionWorkInputs, FieldFunction, FieldKind, FieldName, FieldWork, HashKind, HashName, HashWork, Problem,
    State,
)

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
addition = FieldWork(kind=FieldKind.FIELD, field=FieldName.BN254_FR, function=FieldFunction.ADD, a=[1, "2"], b=["0x10", 5])
answer = compute.sync(client=client, body=addition)
assert isinstance(answer, Answer) and [int(element, 16) for element in answer.data] == [17, 7], answer

inputs = ExpressionWorkInputs()
inputs["x"] = Array(dtype=DTypeName.F32, data=[1, 2, 3])
job = submit_job.sync(client=client, body=ExpressionWork(kind=ExpressionKind.EXPRESSION, inputs=inputs, expression=["sum", ["mul", "x", 2]]))
while (job := get_job.sync(job.id, client=client)).state in (State.QUEUED, State.RUNNING):
    time.sleep(0.02)
assert job.state == State.DONE, job
assert get_result.sync(job.id, client=client).data == [12]
assert job.progress == 100
assert job.id in [one.id for one in list_jobs.sync(client=client, limit=10)]

digest = compute.sync(client=client, body=HashWork(kind=HashKind.HASH, function=HashName.SHA_256, messages=["616263"]))
assert digest.data == ["0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"], digest

addition.a = ["no number", 1]
problem = compute.sync(client=client, body=addition)
assert isinstance(problem, Problem) and problem.status == 422 and problem.pointer == "/a/0", problem
print("the client for Python works")
