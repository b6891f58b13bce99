import http.client
import json
import os
import time
import urllib.error
import urllib.request


# The key names what is sent, such as an order: with it a message that is tried
# again is sent and paid once.
def send(key: str, message: dict) -> dict:
    attempt = 0
    while True:
        request = urllib.request.Request(
            os.environ["BASE_URL"] + "/sms",
            method="POST",
            headers={
                "Authorization": "Bearer " + os.environ["TOKEN"],
                "Content-Type": "application/json",
                "Idempotency-Key": key,
            },
            data=json.dumps(message).encode(),
        )
        wait = 2**attempt  # 1, 2, 4, 8 seconds, without Retry-After
        try:
            with urllib.request.urlopen(request, timeout=15) as response:
                return json.load(response)
        except urllib.error.HTTPError as refusal:
            said = f"{refusal.code}: {refusal.read().decode(errors='replace')}"
            if refusal.code not in (408, 409, 429) and refusal.code < 500:
                raise RuntimeError(said) from None
            wait = int(refusal.headers.get("Retry-After") or wait)
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = f"no answer: {error}"  # refused, broken off or too late
        if attempt == 4:
            raise RuntimeError(said)
        time.sleep(wait)
        attempt += 1


answer = send("order-1004", {
    "phone_number": "+25701000001",
    "sender": "INTUMWATEST",
    "message": "Urakoze!",
})
print(answer["id"])
