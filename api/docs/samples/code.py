import json
import os
import sys
import urllib.error
import urllib.request
import uuid


def call(path: str, body: dict, headers: dict | None = None) -> tuple[int, dict]:
    """The answer's status and body. See above for when to try again."""
    request = urllib.request.Request(
        os.environ["BASE_URL"] + "/verifications" + path,
        method="POST",
        headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json", **(headers or {})},
        data=json.dumps(body).encode(),
    )
    try:
        with urllib.request.urlopen(request, timeout=15) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def start(number: str) -> str:
    """Send a code. Keep the verification's id in the person's session.

    If you make the key with the form that you show, a double click sends one code.
    """
    key = {"Idempotency-Key": str(uuid.uuid4())}
    status, answer = call("", {"phone_number": number, "sender": "INTUMWATEST"}, key)
    if status != 200:
        raise RuntimeError(f"{status}: {answer['message']}")
    return answer["id"]


def check(verification: str, code: str) -> str:
    """approved, or why the code is not accepted."""
    status, answer = call(f"/{verification}/check", {"code": code})
    return answer["status"] if status == 200 else answer["message"]


what, *values = sys.argv[1:]
print({"start": start, "check": check}[what](*values))
