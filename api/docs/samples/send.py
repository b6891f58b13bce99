import json
import os
import urllib.error
import urllib.request

request = urllib.request.Request(
    os.environ["BASE_URL"] + "/sms",
    method="POST",
    headers={
        "Authorization": "Bearer " + os.environ["TOKEN"],
        "Content-Type": "application/json",
        "Idempotency-Key": "order-1004",
    },
    data=json.dumps({
        "phone_number": "+25761234500",
        "sender": "INTUMWATEST",
        "message": "Urakoze!",
    }).encode(),
)
try:
    with urllib.request.urlopen(request) as response:
        print(json.load(response)["id"])
except urllib.error.HTTPError as refusal:
    raise SystemExit(f"{refusal.code}: {json.load(refusal)['message']}")
