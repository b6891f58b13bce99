import base64
import hashlib
import hmac


# body is the bytes as they came (Flask: request.get_data()).
# headers has lower-case names; secret is the whole whsec_… string.
def verify(secret: str, headers: dict, body: bytes, now: float) -> bool:
    contract = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(contract, headers.get("x-webhook-signature", "")):
        return False

    # Standard Webhooks, which also refuses a request that is sent again later.
    timestamp = headers.get("webhook-timestamp", "")
    signed = f"{headers.get('webhook-id', '')}.{timestamp}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    standard = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()

    return hmac.compare_digest(standard, headers.get("webhook-signature", "")) and abs(now - int(timestamp)) <= 300
