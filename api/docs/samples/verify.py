import base64
import hashlib
import hmac


# body is the bytes as they came (Flask: request.get_data()).
# headers has lower-case names; secret is the whole whsec_… string.
def verify(secret: str, headers: dict, body: bytes, now: float) -> bool:
    # For a day after the secret was rotated there are two signatures, of the new
    # secret and the old; X-Webhook-Signature is the old one's until then.
    signatures = headers.get("webhook-signature", "").split(" ")
    contract = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if len(signatures) == 1 and not hmac.compare_digest(contract, headers.get("x-webhook-signature", "")):
        return False

    # Standard Webhooks, which also refuses a request that is sent again later.
    timestamp = headers.get("webhook-timestamp", "")
    signed = f"{headers.get('webhook-id', '')}.{timestamp}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    standard = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()

    return any(hmac.compare_digest(standard, s) for s in signatures) and abs(now - int(timestamp)) <= 300
